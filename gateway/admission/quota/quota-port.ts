/**
 * The quota port. It limits the requests of each API key, and of each studio with a limit for all its keys, in a window of fixed length. A
 * window begins with a request; the first request after its end begins the next one. `test/contract/quota-contract.ts` tests every "must"
 * below on every adapter.
 *
 * A refused request gets a time to wait in whole seconds: the rest of the window, rounded up. The refusal is stored with its length and
 * checked before anything else. So the key (or likewise the studio) is refused until the latest end that was returned, however limits
 * change. This is less than a second after the window's end.
 *
 * A request with less than a second to wait cannot get that time in whole seconds. A full second would extend the refusal, and a caller
 * that keeps trying would never be admitted. So it waits, and is consumed again.
 */
export interface Quota {
  /**
   * Counts one request in the key's window and, if the studio has a limit, in the studio's. It counts in both, or in neither if either
   * refuses. Exactly `limit` of any concurrent calls must be admitted per window, in all gateways that share it. A refused request must not
   * consume: it must not begin a window, take from the next one, or extend one beyond the returned time. A response must remain true even
   * if limits change, are removed or return, or requests are refunded meanwhile.
   *
   * Must resolve or reject within QUOTA_TIMEOUT_MS.
   *
   * @param patienceMs how long the request can still wait for the end of a refusal: MAX_HOLD_MS at first, then less by each `waitMs`; 0 if
   * omitted. If the rest of its window is longer, it is refused
   * @throws QuotaUnavailable when it cannot count, or may have: at worst the request is counted and not served
   */
  consume(caller: QuotaCaller, limits: QuotaLimits, patienceMs?: number): Promise<QuotaDecision>;

  /**
   * Returns an admitted request to its windows. They must then admit exactly one more request, or none if a request was refused meanwhile.
   * A window must neither restart nor last longer. After its end nothing must happen: the next window would get one request too many.
   *
   * Must resolve or reject within QUOTA_TIMEOUT_MS.
   *
   * @param windows the windows of the request's decision
   * @throws QuotaUnavailable when it cannot count, or may have: at worst the request stays counted
   */
  refund(caller: QuotaCaller, windows: readonly number[]): Promise<void>;

  /** Returns the share of studios for which the last readiness check could count, from 0 to 1. */
  countedShare(): number;

  /**
   * Returns why `consume` cannot count for any studio, or undefined if it can for some. Must do everything that counting does, without
   * counting for a key. Must resolve within QUOTA_TIMEOUT_MS; never rejects.
   */
  fault(): Promise<string | undefined>;

  /** Closes connections and timers. It may be called twice. Later calls throw QuotaUnavailable. */
  close(): Promise<void>;
}

declare module 'fastify' {
  interface FastifyInstance {
    readonly quota: Quota;
  }
}

/** The caller of a request. */
export interface QuotaCaller {
  /** The key's id, a UUID; never its secret. */
  readonly apiKeyId: string;
  readonly studioId: string;
}

export interface QuotaLimits {
  readonly key: number;
  /** For all keys of the studio together. Without a limit (undefined), they are not counted. */
  readonly studio: number | undefined;
}

/** The rest of a window. */
interface WindowRest {
  /** The number of requests left in the window; 0 for a refused request. */
  readonly remaining: number;
  /** Whole seconds, rounded up: the time to the end of the window, or for a refused request the time to wait. */
  readonly resetSeconds: number;
}

/**
 * The outcome of one request, and the state of its more restrictive window. For an admitted request, `isMoreRestrictive` decides; for a
 * refused one, the longer refusal.
 */
export interface QuotaDecision extends WindowRest {
  readonly admitted: boolean;
  /** If not 0, the request is neither admitted nor refused, and must be consumed again after this time; milliseconds. */
  readonly waitMs: number;
  /** The owner of that window. */
  readonly owner: keyof QuotaLimits;
  /** The limit of that window; during a refusal, the limit that was used up. */
  readonly limit: number;
  /** The windows that count the request: the key's and, if it has a limit, the studio's. Only for `refund`. */
  readonly windows: readonly number[];
}

/** Returns whether the second of two windows is more restrictive: it has fewer requests left or, if equal, lasts longer. */
export const isMoreRestrictive = (first: WindowRest, second: WindowRest): boolean =>
  second.remaining < first.remaining ||
  (second.remaining === first.remaining && second.resetSeconds > first.resetSeconds);

/** The maximum length of a window; seconds. */
export const MAX_WINDOW_SECONDS = 86_400;

/** How long a request may wait for the end of a refusal instead of being refused; milliseconds. Less than `Retry-After: 1`. */
export const MAX_HOLD_MS = 1000;

/** The default limits and the window length. Whole numbers, at least 1; the window at most MAX_WINDOW_SECONDS. */
export interface QuotaPolicy {
  readonly limit: number;
  /** For all keys of a studio together; undefined means no limit. */
  readonly studioLimit: number | undefined;
  readonly windowSeconds: number;
}

/** Reports that the request cannot be counted now. The message is for the log, and contains no secret. */
export class QuotaUnavailable extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'QuotaUnavailable';
  }
}
