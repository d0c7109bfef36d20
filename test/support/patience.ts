import { vi } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import { StoreUnavailable } from '../../src/store/port/faults.ts';
import type { StoreListeners } from '../../src/store/port/listeners.ts';
import type { Store } from '../../src/store/store.ts';

/** Makes a call as a caller does: again while its outcome is unknown, as on a busy server. It must be the same call each time. */
export async function patiently<Result>(call: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call();
    } catch (error) {
      const isUnknown =
        error instanceof StoreUnavailable && /outcome is unknown|d(?:id|oes) not respond/.test(error.message);
      if (!isUnknown || tries === 20) throw error;
    }
  }
}

/** Opens a store that can be used: a busy server may make the indexes of a new database only after it is open. */
export async function openedStore(databaseUrl: string, ...listeners: StoreListeners): Promise<Store> {
  const store = await openStore(databaseUrl, ...listeners);
  await untilChecked(store);
  return store;
}

export const untilChecked = (store: Store) => vi.waitFor(() => store.check(), { timeout: 100_000 });
