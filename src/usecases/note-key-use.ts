import { AsyncLocalStorage } from 'node:async_hooks';
import type { ApiKey } from '../domain/api-key.ts';
import type { ApiKeyStore } from '../store/store.ts';

/** How old a key's last use may be before a later one is kept; milliseconds. */
const KEPT_EVERY_MS = 60_000;

/**
 * Notes that keys were used, each at most once a minute, on nobody's time: whoever uses a key does not wait for it, and does
 * not hear of it when it fails.
 */
export function keyUseNoter(store: Pick<ApiKeyStore, 'noteApiKeyUse'>): (key: ApiKey, now: Date) => void {
  /** What this process has noted, or tried to, in the minute that began last. */
  const noted = new Set<string>();
  let began = 0;
  // The call that uses a key ends before its use is kept, so that is done as if nobody had called.
  const forNobody = AsyncLocalStorage.snapshot();
  return ({ id, studioId, lastUsedAt }, now) => {
    const time = now.getTime();
    if (lastUsedAt !== null && time - lastUsedAt.getTime() < KEPT_EVERY_MS) return;
    if (time - began >= KEPT_EVERY_MS) {
      noted.clear();
      began = time;
    }
    if (noted.has(id)) return;
    noted.add(id);
    const unlessSince = new Date(time - KEPT_EVERY_MS);
    forNobody(() => store.noteApiKeyUse({ studioId, keyId: id, now, unlessSince })).catch(() => {});
  };
}
