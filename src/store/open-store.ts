import { openSqliteStore } from './sqlite/sqlite-store.ts';
import type { Store } from './store.ts';

/**
 * Opens the store that an address names.
 *
 * @param databaseUrl `sqlite:PATH`
 * @throws Error when it cannot be opened
 */
export async function openStore(databaseUrl: string): Promise<Store> {
  return openSqliteStore(databaseUrl.replace(/^sqlite:/, ''));
}

/** What is wrong with an address, as the end of the sentence "DATABASE_URL …". */
export function databaseUrlFault(databaseUrl: string): string | undefined {
  return /^sqlite:./.test(databaseUrl) ? undefined : 'must be sqlite:PATH';
}
