/**
 * The quota port: how many requests each API key, and where that has a limit each studio with all its keys, may make in a fixed
 * window of time, which begins with the first request and is followed by the next one's. `test/contract/quota-contract.ts` holds every "must" below against every
 * adapter.
 *
 * Who is refused is told a time in whole seconds, and the same time decides: until it is over, the key is refused. Whole
 * seconds from two moments of one window lead to moments that are less than a second apart, and so a key (or studio, of which
 * the same holds) is refused until
 * the latest of those that were told within its window. Who comes after the window's end but before that is told the
 * least there is, a second. That must not put the end off again, or somebody who keeps asking would never be let in.
 */
export interface Quota {
  /**
   * Takes one request out of the key's window and, where the studio has a limit, out of the studio's: out of both, or, when
   * either refuses, out of neither. Of any number of simultaneous calls in one window, in however many gateways that share it,
   * exactly `limit` must be admitted. A refused request must not consume: it neither makes a window longer, beyond the time
   * that it is told, nor takes anything from the next one, nor begins one. What was told must hold whatever the limits become
   * meanwhile, and whatever is put back.
   *
   * Must answer, or reject, within QUOTA_ANSWER_MS.
   *
   * @throws QuotaUnavailable when it cannot count, or does not know whether it did: at worst the request is counted and
   *   not served
   */
  consume(bearer: QuotaBearer, limits: QuotaLimits): Promise<QuotaDecision>;

  /**
   * Puts back what an admitted request took: it must then be there for exactly one other of the same window, or for none
   * where somebody was refused meanwhile. The window must neither begin anew nor last longer, and once it is over nothing
   * must happen: in the next window it would be one request too many.
   *
   * Must answer, or reject, within QUOTA_ANSWER_MS.
   *
   * @param windows those that the request was taken out of, as its decision says
   * @throws QuotaUnavailable when it cannot count, or does not know whether it did: at worst the request stays counted
   */
  putBack(bearer: QuotaBearer, windows: readonly number[]): Promise<void>;

  /**
   * Whether `consume` could count right now. Must find that out by doing all that counting takes, at no key's expense.
   * Must answer within QUOTA_ANSWER_MS; never rejects.
   */
  ready(): Promise<boolean>;

  /** Lets go of connections and timers; may be called twice. From then on nothing is counted: QuotaUnavailable. */
  close(): Promise<void>;
}

/** Who makes a request. */
export interface QuotaBearer {
  /** The key's id, a UUID; never its secret. */
  readonly apiKeyId: string;
  /** The id of the studio that the key opens. */
  readonly studioId: string;
}

/** How many requests may be made in a window. */
export interface QuotaLimits {
  readonly key: number;
  /** All keys of the studio together; undefined: as many as they like, which are not counted. */
  readonly studio: number | undefined;
}

/** What became of one request, and what is told of the one of its windows that decides: see `tellsMore`. */
export interface QuotaDecision {
  readonly admitted: boolean;
  /** Whose window it is. */
  readonly of: keyof QuotaLimits;
  /** How many requests that has. */
  readonly limit: number;
  /** Requests that are left in it, 0 when this one is refused. */
  readonly remaining: number;
  /** The time to its end; whole seconds, rounded up. To who is refused: for how long they will be. */
  readonly resetSeconds: number;
  /** Which windows the request was taken out of: the key's and, if it is counted, the studio's. Only for `putBack`. */
  readonly windows: readonly number[];
}

/**
 * Which of two windows a caller is told of: the one that will be used up first, so the one with fewer requests left, and of two
 * that have as many the one that lasts longer. Of two that refuse, it is the one that refuses for longer.
 *
 * @returns whether it is the second
 */
export const tellsMore = (
  first: Pick<QuotaDecision, 'remaining' | 'resetSeconds'>,
  second: Pick<QuotaDecision, 'remaining' | 'resetSeconds'>,
): boolean =>
  second.remaining < first.remaining ||
  (second.remaining === first.remaining && second.resetSeconds > first.resetSeconds);

/** The longest window that may be set; seconds. */
export const MAX_WINDOW_SECONDS = 86_400;

/**
 * How many requests in how long a time, for whoever has no limit of their own. Whole numbers, at least 1; the window at most
 * MAX_WINDOW_SECONDS.
 */
export interface QuotaPolicy {
  /** Of a key. */
  readonly limit: number;
  /** Of all keys of a studio together; undefined: as many as they like. */
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
