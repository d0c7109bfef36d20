/**
 * The quota port: how many requests each API key may make in a fixed window of time, which begins with the key's first
 * request and is followed by the next one's. `test/contract/quota-contract.ts` holds every "must" below against every
 * adapter.
 */
export interface Quota {
  /**
   * Takes one request out of the key's window. Of any number of simultaneous calls in one window, in however many
   * gateways that share it, exactly `limit` must be admitted. A refused request must not consume: it neither makes the
   * window longer nor takes anything from the next one.
   *
   * Must answer, or reject, within QUOTA_ANSWER_MS.
   *
   * @param apiKeyId the key's id, a UUID; never its secret
   * @throws QuotaUnavailable when it cannot count, or does not know whether it did: at worst the request is counted and
   *   not served
   */
  consume(apiKeyId: string): Promise<QuotaDecision>;

  /**
   * Puts back what an admitted request took out of the window that is under way: it must then be there for at most one
   * other, and for exactly one where nobody was refused meanwhile. The window must neither begin anew nor last longer.
   *
   * Must answer, or reject, within QUOTA_ANSWER_MS.
   *
   * @param apiKeyId of a key whose window is under way: in another window it would be one request too many
   * @throws QuotaUnavailable when it cannot count, or does not know whether it did: at worst the request stays counted
   */
  putBack(apiKeyId: string): Promise<void>;

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
  /** The time to the end of the window; milliseconds, more than 0 and at most the window. */
  readonly resetMs: number;
}

/** How many requests in how long a time. Whole numbers, at least 1: Redis would keep a shorter window for ever. */
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
