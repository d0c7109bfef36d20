import {
  isMoreRestrictive,
  MAX_HOLD_MS,
  type Quota,
  type QuotaCaller,
  type QuotaLimits,
  QuotaUnavailable,
} from './quota-port.ts';

/** A window of a key or studio. Its times are the clock's. */
interface Window {
  readonly id: number;
  readonly endsAtMs: number;
  count: number;
  /** The latest retry time that a refusal gave, or 0, and the limit that was used up. */
  refusesUntilMs: number;
  refusedLimit: number | undefined;
}

/**
 * Creates a quota in this process, for a gateway without replicas. Its counts are lost when the process stops.
 *
 * @param clock whole milliseconds since any moment; must never go back
 * @rule 7.1 8.quota 8.counted 8.retry-after
 */
export function createMemoryQuota(
  windowSeconds: number,
  clock: () => number = () => Math.floor(performance.now()),
): Quota {
  const windowMs = windowSeconds * 1000;

  // No window refuses requests for longer than this, so the current and the previous generation suffice. Dropping a whole generation saves
  // a timer per window.
  const generationMs = windowMs + 1000;
  let current = new Map<string, Window>();
  let previous = new Map<string, Window>();
  let generationEndsAtMs = clock() + generationMs;

  let windowCount = 0;
  let isClosed = false;

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
    const window = {
      id: windowCount,
      endsAtMs: nowMs + windowMs,
      count: 0,
      refusesUntilMs: 0,
      refusedLimit: undefined,
    };
    current.set(name, window);
    return window;
  }

  return {
    async consume(caller, limits, patienceMs = 0) {
      if (isClosed) throw new QuotaUnavailable('the quota is closed');
      const nowMs = clock();
      const [keyName, studioName] = toCounterNames(caller);
      const subjects = [
        { owner: 'key', name: keyName, limit: limits.key, window: findWindow(keyName, nowMs) },
        { owner: 'studio', name: studioName, limit: limits.studio, window: findWindow(studioName, nowMs) },
      ] as const;
      const evaluated = subjects
        .map((subject) => evaluate(subject, nowMs, windowMs))
        .filter(({ isCounted, refuses }) => isCounted || refuses);
      const admitted = !evaluated.some(({ refuses }) => refuses);
      const reported = evaluated.reduce((first, second) => {
        const isNext = admitted ? isMoreRestrictive(first, second) : second.restMs > first.restMs;
        return isNext ? second : first;
      });
      const { owner, limit = 0, remaining, resetSeconds, restMs, leftMs } = reported;
      // While the window lasts, a request whose patience is used up is refused for another second.
      const waits = !admitted && (restMs < patienceMs || (restMs < MAX_HOLD_MS && leftMs <= 0));
      const waitMs = waits ? restMs : 0;
      const windows: number[] = [];
      if (admitted) {
        for (const { name, window = beginWindow(name, nowMs) } of evaluated) {
          window.count += 1;
          windows.push(window.id);
        }
      } else if (reported.window && waitMs === 0) {
        reported.window.refusesUntilMs = Math.max(reported.window.refusesUntilMs, nowMs + resetSeconds * 1000);
        reported.window.refusedLimit = limit;
      }
      return { admitted, waitMs, owner, limit, remaining, resetSeconds, windows };
    },
    async refund(caller, windows) {
      if (isClosed) throw new QuotaUnavailable('the quota is closed');
      const nowMs = clock();
      for (const [index, name] of toCounterNames(caller).entries()) {
        const window = findWindow(name, nowMs);
        if (window && window.id === windows[index]) window.count -= 1;
      }
    },
    countedShare: () => (isClosed ? 0 : 1),
    async fault() {
      return isClosed ? 'it is closed' : undefined;
    },
    async close() {
      isClosed = true;
    },
  };
}

const toCounterNames = ({ apiKeyId, studioId }: QuotaCaller) => [apiKeyId, `studio ${studioId}`] as const;

/** A key or studio and its window. Requests are counted if it has a limit. */
interface Subject {
  readonly owner: keyof QuotaLimits;
  readonly name: string;
  readonly limit: number | undefined;
  readonly window: Window | undefined;
}

/** Returns what the window would answer to one more request. Does not count it. */
function evaluate({ owner, name, limit, window }: Subject, nowMs: number, windowMs: number) {
  const { endsAtMs = nowMs + windowMs, count = 0, refusesUntilMs = 0, refusedLimit } = window ?? {};
  const leftMs = endsAtMs - nowMs;
  const refusedMs = refusesUntilMs - nowMs;
  const isExhausted = limit !== undefined && count >= limit;
  const refuses = refusedMs > 0 || isExhausted;
  return {
    owner,
    name,
    limit: (refuses ? refusedLimit : undefined) ?? limit,
    isCounted: limit !== undefined,
    window,
    refuses,
    restMs: Math.max(refusedMs, isExhausted ? leftMs : 0),
    leftMs,
    remaining: refuses ? 0 : (limit ?? 0) - count - 1,
    resetSeconds: Math.max(1, Math.ceil(leftMs / 1000)),
  };
}
