import type { TimeRange } from '../../domain/lead-filter.ts';

/** The next `limit` leads of a studio, lowest id first, or some by their ids; erased ones too. Of these those that changed in a range. */
export type SomeLeads = { readonly studioId: string; readonly updated?: TimeRange | undefined } & (
  | { readonly after: string | null; readonly limit: number }
  | { readonly leadIds: readonly string[] }
);

export interface ResendOptions {
  /** The number of the consumer that is sent them; default: every consumer is. */
  readonly consumer?: number | undefined;
  /** Revisions are at least this; default: those of `now`. */
  readonly lowest?: number | undefined;
}

export interface ResentLeads {
  readonly leads: number;
  /** The number of leads that cannot be marked. */
  readonly skipped: number;
  readonly next: string | null;
}

/**
 * The marks of the change feed. Every write of LeadCreation, LeadChanges and LeadErasureStore that changes a lead must mark it in the same write and give it a higher
 * revision. A new lead is marked. ConsumerStore makes deliveries of the marks.
 */
export interface ResendStore {
  /**
   * Marks some leads of a studio as if they had changed, for every consumer or for one. Must give each a new revision, so
   * that an earlier acknowledgement does not apply. A lead that cannot be marked must be reported, and not affect the others.
   *
   * @returns the number of leads that were marked, and of those that were not
   */
  resendLeads(leads: SomeLeads, now: Date, options?: ResendOptions): Promise<ResentLeads>;
}
