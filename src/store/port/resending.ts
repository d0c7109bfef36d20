import type { TimeRange } from '../../domain/lead-filter.ts';

/** Leads of a studio, including erased ones: the next `limit`, lowest id first, or some by id. `updated`: only those that last changed in the range. */
export type SomeLeads = { readonly studioId: string; readonly updated?: TimeRange | undefined } & (
  | { readonly after: string | null; readonly limit: number }
  | { readonly leadIds: readonly string[] }
);

export interface ResendOptions {
  /** The number of the receiving consumer; default: all consumers. */
  readonly consumer?: number | undefined;
  /** The minimum of the new revisions; default: that of `now`. */
  readonly lowest?: number | undefined;
}

export interface ResentLeads {
  readonly leads: number;
  /** The number of leads that cannot be resent. */
  readonly skipped: number;
  readonly next: string | null;
}

/**
 * The pending changes of the feed, which DeliveryStore turns into deliveries. Every write that creates, changes or erases
 * a lead must also store a pending change, with a higher revision.
 */
export interface ResendStore {
  /**
   * Stores a pending change for leads of a studio as if they had changed, for every consumer or for one. Each lead must
   * get a new revision, so that an earlier acknowledgement does not apply. A lead that cannot be resent must be reported,
   * and not affect the others.
   *
   * @returns the numbers of resent leads, and of leads that cannot be resent
   */
  resendLeads(leads: SomeLeads, now: Date, options?: ResendOptions): Promise<ResentLeads>;
}
