import { isMoreRestrictive, type Quota, type QuotaBearer, type QuotaLimits, QuotaUnavailable } from './quota-port.ts';

/** A window of a key or studio. Times are those of the clock. */
interface Window {
  readonly id: number;
  readonly endsAtMs: number;
  /** The number of admitted requests. */
  count: number;
  /** The latest time that a refusal gave for its retry; 0 when no request was refused. */
  refusesUntilMs: number;
}

/** A key or studio whose requests are counted. */
interface Subject {
  readonly of: keyof QuotaLimits;
  readonly name: string;
  readonly limit: number;
}

/**
 * A quota in this process: for a gateway without replicas. The counts are lost when it stops.
 *
 * @param clock whole milliseconds since any moment; never goes back
 * @rule 7.1 8.quota 8.counted 8.retry-after
 */
export function createMemoryQuota(
  windowSeconds: number,
  clock: () => number = () => Math.floor(performance.now()),
): Quota {
  const windowMs = windowSeconds * 1000;

  // After this time a window refuses no request, so the windows that began in the current and the previous generation
  // are enough. Whole generations are dropped; no window needs a timer.
  const generationMs = windowMs + 1000;
  let current = new Map<string, Window>();
  let previous = new Map<string, Window>();
  let generationEndsAtMs = clock() + generationMs;

  let windowCount = 0;
  let closed = false;

  function findWindow(name: string, nowMs: number): Window | undefined {
    const window = current.get(name) ?? previous.get(name);
    return window && nowMs < Math.max(window.endsAtMs, window.refusesUntilMs) ? window : undefined;
  }

  function beginWindow(name: string, nowMs: number): Window {
    if (nowMs >= generationEndsAtMs) {
      [previous, current] = [current, new Map()];
      generationEndsAtMs = nowMs + generationMs;
    }
    windowCount += 1;
    const window = { id: windowCount, endsAtMs: nowMs + windowMs, count: 0, refusesUntilMs: 0 };
    current.set(name, window);
    return window;
  }

  /** Returns what one more request would get, without counting it. */
  function evaluate({ of, name, limit }: Subject, nowMs: number) {
    const window = findWindow(name, nowMs);
    const leftMs = (window?.endsAtMs ?? nowMs + windowMs) - nowMs;
    const refuses = window !== undefined && (window.count >= limit || window.refusesUntilMs > 0);
    const remaining = refuses ? 0 : limit - (window?.count ?? 0) - 1;
    return { of, name, limit, window, refuses, leftMs, remaining, resetSeconds: Math.max(1, Math.ceil(leftMs / 1000)) };
  }

  return {
    async consume(bearer, limits) {
      if (closed) throw new QuotaUnavailable('the quota is closed');
      const nowMs = clock();
      const evaluated = subjectsOf(bearer, limits).map((subject) => evaluate(subject, nowMs));
      const refusing = evaluated.filter(({ refuses }) => refuses);
      const admitted = refusing.length === 0;
      const reported = (admitted ? evaluated : refusing).reduce((first, second) =>
        isMoreRestrictive(first, second) ? second : first,
      );
      const { of, limit, remaining, resetSeconds, leftMs } = reported;
      const windows: number[] = [];
      if (admitted) {
        for (const { name, window = beginWindow(name, nowMs) } of evaluated) {
          window.count += 1;
          windows.push(window.id);
        }
      } else if (reported.window && leftMs > 0) {
        reported.window.refusesUntilMs = Math.max(reported.window.refusesUntilMs, nowMs + resetSeconds * 1000);
      }
      return { admitted, of, limit, remaining, resetSeconds, windows };
    },
    async refund(bearer, windows) {
      if (closed) throw new QuotaUnavailable('the quota is closed');
      const nowMs = clock();
      for (const [index, name] of namesOf(bearer).entries()) {
        const window = findWindow(name, nowMs);
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

function subjectsOf(bearer: QuotaBearer, limits: QuotaLimits): Subject[] {
  const [keyName, studioName] = namesOf(bearer);
  const key: Subject = { of: 'key', name: keyName, limit: limits.key };
  return limits.studio === undefined ? [key] : [key, { of: 'studio', name: studioName, limit: limits.studio }];
}
