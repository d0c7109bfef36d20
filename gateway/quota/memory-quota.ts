import { type Quota, type QuotaBearer, type QuotaLimits, QuotaUnavailable, tellsMore } from './quota-port.ts';

/** One window of one key or studio. Times are the clock's. */
interface Window {
  readonly id: number;
  readonly endsAtMs: number;
  /** How many requests were admitted. */
  count: number;
  /** The latest moment that somebody was told to wait for; 0 when nobody was refused. */
  refusesUntilMs: number;
}

/** Of whom requests are counted. */
interface Counted {
  readonly of: keyof QuotaLimits;
  readonly name: string;
  readonly limit: number;
}

/**
 * Counts in this process alone: for a gateway without replicas, which may forget its counts when it stops.
 *
 * @param clock whole milliseconds since some moment; never goes back
 * @rule 7.1 8.quota 8.counted 8.retry-after
 */
export function createMemoryQuota(
  windowSeconds: number,
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

  function underWay(name: string, nowMs: number): Window | undefined {
    const window = recent.get(name) ?? earlier.get(name);
    return window && nowMs < Math.max(window.endsAtMs, window.refusesUntilMs) ? window : undefined;
  }

  function begin(name: string, nowMs: number): Window {
    if (nowMs >= spanEndsAtMs) {
      [earlier, recent] = [recent, new Map()];
      spanEndsAtMs = nowMs + spanMs;
    }
    begun += 1;
    const window = { id: begun, endsAtMs: nowMs + windowMs, count: 0, refusesUntilMs: 0 };
    recent.set(name, window);
    return window;
  }

  /** What a window says of one more request, while nothing is written. */
  function look({ of, name, limit }: Counted, nowMs: number) {
    const window = underWay(name, nowMs);
    const leftMs = (window?.endsAtMs ?? nowMs + windowMs) - nowMs;
    const refuses = window !== undefined && (window.count >= limit || window.refusesUntilMs > 0);
    const remaining = refuses ? 0 : limit - (window?.count ?? 0) - 1;
    return { of, name, limit, window, refuses, leftMs, remaining, resetSeconds: Math.max(1, Math.ceil(leftMs / 1000)) };
  }

  return {
    async consume(bearer, limits) {
      if (closed) throw new QuotaUnavailable('the quota is closed');
      const nowMs = clock();
      const looks = countedOf(bearer, limits).map((counted) => look(counted, nowMs));
      const refusing = looks.filter(({ refuses }) => refuses);
      const admitted = refusing.length === 0;
      const told = (admitted ? looks : refusing).reduce((first, second) => (tellsMore(first, second) ? second : first));
      const { of, limit, remaining, resetSeconds, leftMs } = told;
      const windows: number[] = [];
      if (admitted) {
        for (const { name, window = begin(name, nowMs) } of looks) {
          window.count += 1;
          windows.push(window.id);
        }
      } else if (told.window && leftMs > 0) {
        told.window.refusesUntilMs = Math.max(told.window.refusesUntilMs, nowMs + resetSeconds * 1000);
      }
      return { admitted, of, limit, remaining, resetSeconds, windows };
    },
    async putBack(bearer, windows) {
      if (closed) throw new QuotaUnavailable('the quota is closed');
      const nowMs = clock();
      for (const [index, name] of namesOf(bearer).entries()) {
        const window = underWay(name, nowMs);
        if (window && window.id === windows[index]) window.count -= 1;
      }
    },
    async ready() {
      return !closed;
    },
    async close() {
      closed = true;
    },
  };
}

const namesOf = ({ apiKeyId, studioId }: QuotaBearer) => [apiKeyId, `studio ${studioId}`] as const;

function countedOf(bearer: QuotaBearer, limits: QuotaLimits): Counted[] {
  const [keyName, studioName] = namesOf(bearer);
  const key: Counted = { of: 'key', name: keyName, limit: limits.key };
  return limits.studio === undefined ? [key] : [key, { of: 'studio', name: studioName, limit: limits.studio }];
}
