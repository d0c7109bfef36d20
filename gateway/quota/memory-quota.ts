import { type Quota, type QuotaPolicy, QuotaUnavailable } from './quota-port.ts';

/** One window of one key. Times are the clock's. */
interface Window {
  readonly id: number;
  readonly endsAtMs: number;
  /** How many requests were admitted. */
  count: number;
  /** The latest moment that somebody was told to wait for; 0 when nobody was refused. */
  refusesUntilMs: number;
}

/**
 * Counts in this process alone: for a gateway without replicas, which may forget its counts when it stops.
 *
 * @param clock whole milliseconds since some moment; never goes back
 * @rule 7.1 8.quota 8.counted 8.retry-after
 */
export function createMemoryQuota(
  { limit, windowSeconds }: QuotaPolicy,
  clock: () => number = () => Math.floor(performance.now()),
): Quota {
  const windowMs = windowSeconds * 1000;

  // After this long a window refuses nobody any more, so it is enough to know those that began in the last two such
  // spans. None has to be removed by itself, and none has a timer.
  const spanMs = windowMs + 1000;
  let recent = new Map<string, Window>();
  let earlier = new Map<string, Window>();
  let spanEndsAtMs = clock() + spanMs;

  let begun = 0;
  let closed = false;

  function underWay(apiKeyId: string, nowMs: number): Window | undefined {
    const window = recent.get(apiKeyId) ?? earlier.get(apiKeyId);
    return window && nowMs < Math.max(window.endsAtMs, window.refusesUntilMs) ? window : undefined;
  }

  function begin(apiKeyId: string, nowMs: number): Window {
    if (nowMs >= spanEndsAtMs) {
      [earlier, recent] = [recent, new Map()];
      spanEndsAtMs = nowMs + spanMs;
    }
    begun += 1;
    const window = { id: begun, endsAtMs: nowMs + windowMs, count: 0, refusesUntilMs: 0 };
    recent.set(apiKeyId, window);
    return window;
  }

  return {
    async consume(apiKeyId) {
      if (closed) throw new QuotaUnavailable('the quota is closed');
      const nowMs = clock();
      const window = underWay(apiKeyId, nowMs) ?? begin(apiKeyId, nowMs);
      const leftMs = window.endsAtMs - nowMs;
      const resetSeconds = Math.max(1, Math.ceil(leftMs / 1000));
      const admitted = window.count < limit && window.refusesUntilMs === 0;
      if (admitted) window.count += 1;
      else if (leftMs > 0) window.refusesUntilMs = Math.max(window.refusesUntilMs, nowMs + resetSeconds * 1000);
      return { admitted, limit, remaining: admitted ? limit - window.count : 0, resetSeconds, window: window.id };
    },
    async putBack(apiKeyId, id) {
      if (closed) throw new QuotaUnavailable('the quota is closed');
      const window = underWay(apiKeyId, clock());
      if (window?.id === id) window.count -= 1;
    },
    async ready() {
      return !closed;
    },
    async close() {
      closed = true;
    },
  };
}
