import { mongoUrlFault } from './mongo/connection.ts';
import { openMongoStore } from './mongo/mongo-store.ts';
import { openSqliteStore } from './sqlite/sqlite-store.ts';
import type { ReportUnreadable, Store, StoreObserver } from './store.ts';

/**
 * Opens the store that an address names.
 *
 * @param databaseUrl `sqlite:PATH`, `mongodb://…` or `mongodb+srv://…`
 * @param observe is told of every command to the database
 * @param report is told of every record that cannot be read where a call goes on without it
 * @throws StoreUnavailable when a file cannot be opened, with what to do about it; a server need not be there yet
 */
export async function openStore(
  databaseUrl: string,
  observe?: StoreObserver,
  report?: ReportUnreadable,
): Promise<Store> {
  return databaseUrl.startsWith('sqlite:')
    ? openSqliteStore(databaseUrl.slice('sqlite:'.length), observe, report)
    : openMongoStore(databaseUrl, observe, report);
}

/** What is wrong with an address, as the end of the sentence "DATABASE_URL …". */
export function databaseUrlFault(databaseUrl: string): string | undefined {
  if (/^mongodb(?:\+srv)?:\/\//.test(databaseUrl)) return mongoUrlFault(databaseUrl);
  return /^sqlite:./.test(databaseUrl) ? undefined : 'must be sqlite:PATH, mongodb://… or mongodb+srv://…';
}
