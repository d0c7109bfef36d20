/**
 * The quota port. It limits the requests of each API key, and of each studio with a limit for all its keys, in a window
 * of fixed length. A window begins with a request; the first request after its end begins the next one.
 * `test/contract/quota-contract.ts` tests every "must" below on every adapter.
 *
 * A refused request gets a time to wait in whole seconds: the rest of the window, rounded up. The refusal is stored with
 * its length and looked at before anything else, so the key (or the studio, to which the same applies) is refused until
 * the latest end that was returned, less than a second after the window's, whatever happens to the limits meanwhile.
 *
 * A request with less than a second to wait cannot get that time in whole seconds: one second more would extend the
 * refusal, and a caller that keeps trying would never be admitted. So it gets none; it waits, and is consumed again.
 */
export interface Quota {
  /**
   * Counts one request in the key's window and, if the studio has a limit, in the studio's: in both, or, when either
   * refuses, in neither. Of any number of concurrent calls in one window, in any number of gateways that share it,
   * exactly `limit` must be admitted. A refused request must not consume: it neither extends a window, beyond the time
   * that the caller gets, nor takes anything from the next one, nor begins one. What a response said must hold even if
   * the limits change, are removed or return, or requests are refunded meanwhile.
   *
   * Must resolve or reject within QUOTA_TIMEOUT_MS.
   *
   * @param patienceMs how long the request can still wait for the end of a refusal: MAX_HOLD_MS at first, then less by
   *   each `waitMs`; 0 if omitted. If the rest of its window is longer, it is refused
   * @throws QuotaUnavailable when it cannot count, or may have: at worst the request is counted and not served
   */
  consume(caller: QuotaCaller, limits: QuotaLimits, patienceMs?: number): Promise<QuotaDecision>;

  /**
   * Returns an admitted request to its windows, which must then admit exactly one more request, or none if a request
   * was refused meanwhile. A window must neither restart nor last longer, and after its end nothing must happen: in the
   * next window it would be one request too many.
   *
   * Must resolve or reject within QUOTA_TIMEOUT_MS.
   *
   * @param windows the windows of the request's decision
   * @throws QuotaUnavailable when it cannot count, or may have: at worst the request stays counted
   */
  refund(caller: QuotaCaller, windows: readonly number[]): Promise<void>;

  /** The share of studios for which the last readiness check could count, from 0 to 1. */
  countedShare(): number;

  /**
   * Returns why `consume` could not count right now, for no studio; undefined: it could for some. Must perform everything that counting takes, without counting for
   * any key. Must resolve within QUOTA_TIMEOUT_MS; never rejects.
   */
  fault(): Promise<string | undefined>;

  /** Closes connections and timers; may be called twice. Later calls throw QuotaUnavailable. */
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
  /** For all keys of the studio together; undefined: no limit, and not counted. */
  readonly studio: number | undefined;
}

/**
 * The outcome of one request, and the state of the more restrictive of its windows: of an admitted request see
 * `isMoreRestrictive`, of another one the window that refuses for longer.
 */
export interface QuotaDecision {
  readonly admitted: boolean;
  /** Not 0: the request is neither admitted nor refused, and is to be consumed again after this time; milliseconds. */
  readonly waitMs: number;
  /** The owner of that window. */
  readonly of: keyof QuotaLimits;
  /** The limit of that window; during a refusal, the one that was used up. */
  readonly limit: number;
  /** The number of requests left in it; 0 when this one is refused. */
  readonly remaining: number;
  /** The time to its end, or for a refused request the time to wait; whole seconds, rounded up. */
  readonly resetSeconds: number;
  /** The windows that count the request: the key's and, if it has a limit, the studio's. Only for `refund`. */
  readonly windows: readonly number[];
}

/**
 * Returns whether the second of two windows is more restrictive: the one with fewer requests left or, if they are
 * equal, the one that lasts longer.
 */
export const isMoreRestrictive = (
  first: Pick<QuotaDecision, 'remaining' | 'resetSeconds'>,
  second: Pick<QuotaDecision, 'remaining' | 'resetSeconds'>,
): boolean =>
  second.remaining < first.remaining ||
  (second.remaining === first.remaining && second.resetSeconds > first.resetSeconds);

/** The maximum length of a window; seconds. */
export const MAX_WINDOW_SECONDS = 86_400;

/** How long a request waits for the end of a refusal rather than being refused; milliseconds. Less than `Retry-After: 1`. */
export const MAX_HOLD_MS = 1000;

/**
 * The default limits and the length of windows. Whole numbers, at least 1; the window at most MAX_WINDOW_SECONDS.
 */
export interface QuotaPolicy {
  readonly limit: number;
  /** For all keys of a studio together; undefined: no limit. */
  readonly studioLimit: number | undefined;
  readonly windowSeconds: number;
}

/** The request cannot be counted now. The message is for the log and carries no secret. */
export class QuotaUnavailable extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'QuotaUnavailable';
  }
}
