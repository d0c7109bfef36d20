import { vi } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import { StoreUnavailable } from '../../src/store/port/faults.ts';
import type { StoreListeners } from '../../src/store/port/listeners.ts';
import type { Store } from '../../src/store/store.ts';

/** Retries a call while its outcome is unknown, as callers do on a busy server. It must be the same call each time. */
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

/** Opens a store and waits until it is usable: on a busy server, a new database may get its indexes later. */
export async function openedStore(databaseUrl: string, listeners?: StoreListeners): Promise<Store> {
  const store = await openStore(databaseUrl, listeners);
  await untilChecked(store);
  return store;
}

export const untilChecked = (store: Store) => vi.waitFor(() => store.check(), { timeout: 100_000 });
