/**
 * The quota port: how many requests each API key may make in a fixed window of time, which begins with the key's first
 * request and is followed by the next one's. `test/contract/quota-contract.ts` holds every "must" below against every
 * adapter.
 *
 * Who is refused is told a time in whole seconds, and the same time decides: until it is over, the key is refused. Whole
 * seconds from two moments of one window lead to moments that are less than a second apart, and so a key is refused until
 * the latest of those that were told within its window. Who comes after the window's end but before that is told the
 * least there is, a second. That must not put the end off again, or somebody who keeps asking would never be let in.
 */
export interface Quota {
  /**
   * Takes one request out of the key's window. Of any number of simultaneous calls in one window, in however many
   * gateways that share it, exactly `limit` must be admitted. A refused request must not consume: it neither makes the
   * window longer, beyond the time that it is told, nor takes anything from the next one. What was told must hold whatever
   * the policy becomes meanwhile, and whatever is put back.
   *
   * Must answer, or reject, within QUOTA_ANSWER_MS.
   *
   * @param apiKeyId the key's id, a UUID; never its secret
   * @throws QuotaUnavailable when it cannot count, or does not know whether it did: at worst the request is counted and
   *   not served
   */
  consume(apiKeyId: string): Promise<QuotaDecision>;

  /**
   * Puts back what an admitted request took: it must then be there for exactly one other of the same window, or for none
   * where somebody was refused meanwhile. The window must neither begin anew nor last longer, and once it is over nothing
   * must happen: in the next window it would be one request too many.
   *
   * Must answer, or reject, within QUOTA_ANSWER_MS.
   *
   * @param window the one that the request was taken out of, as its decision says
   * @throws QuotaUnavailable when it cannot count, or does not know whether it did: at worst the request stays counted
   */
  putBack(apiKeyId: string, window: number): Promise<void>;

  /**
   * Whether `consume` could count right now. Must find that out by doing all that counting takes, at no key's expense.
   * Must answer within QUOTA_ANSWER_MS; never rejects.
   */
  ready(): Promise<boolean>;

  /** Lets go of connections and timers; may be called twice. From then on nothing is counted: QuotaUnavailable. */
  close(): Promise<void>;
}

/** What became of one request. */
export interface QuotaDecision {
  readonly admitted: boolean;
  /** The policy's. */
  readonly limit: number;
  /** Requests that are left in the window, 0 when this one is refused. */
  readonly remaining: number;
  /** The time to the end of the window; whole seconds, rounded up. To who is refused: for how long the key will be. */
  readonly resetSeconds: number;
  /** Which of the key's windows it is; only for `putBack`. */
  readonly window: number;
}

/** The longest window that may be set; seconds. */
export const LONGEST_WINDOW_SECONDS = 86_400;

/** How many requests in how long a time. Whole numbers, at least 1; the window at most LONGEST_WINDOW_SECONDS. */
export interface QuotaPolicy {
  readonly limit: number;
  readonly windowSeconds: number;
}

/** The request cannot be counted now. The message is for the log and carries no secret. */
export class QuotaUnavailable extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'QuotaUnavailable';
  }
}
