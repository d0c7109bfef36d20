import { AsyncLocalStorage } from 'node:async_hooks';
import type { ApiKey } from '../domain/api-key.ts';
import type { ApiKeyStore } from '../store/store.ts';

/** The minimum interval between two writes of a key's last use; milliseconds. */
const WRITE_INTERVAL_MS = 60_000;

/**
 * Returns a function that records the last use of keys, each at most once a minute. It works in the background:
 * requests neither wait for the write nor fail with it.
 */
export function keyUseNoter(store: Pick<ApiKeyStore, 'recordApiKeyUse'>): (key: ApiKey, now: Date) => void {
  /** The keys whose use was written, or attempted, in the current minute. */
  const noted = new Set<string>();
  let began = 0;
  // The request ends before the write does, so the write runs outside the request's async context.
  const outsideRequest = AsyncLocalStorage.snapshot();
  return ({ id, studioId, lastUsedAt }, now) => {
    const time = now.getTime();
    if (lastUsedAt !== null && isWithinInterval(lastUsedAt.getTime(), time)) return;
    if (!isWithinInterval(began, time)) {
      noted.clear();
      began = time;
    }
    if (noted.has(id)) return;
    noted.add(id);
    const unlessSince = new Date(time - WRITE_INTERVAL_MS);
    outsideRequest(() => store.recordApiKeyUse({ studioId, keyId: id, now, unlessSince })).catch(() => {});
  };
}

/** Whether an interval that has begun lasts. A beginning that is still ahead is one of a clock that was set back. */
const isWithinInterval = (began: number, time: number): boolean => time >= began && time - began < WRITE_INTERVAL_MS;
