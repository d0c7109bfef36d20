import type { ErasedLead, Lead } from './lead.ts';

/** What can have happened to a lead. */
export const CHANGE_KINDS = ['created', 'stage-changed', 'updated', 'resent', 'erased'] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** A lead as it is now, with what has happened to it since the last acknowledgement. */
export interface LeadChange {
  readonly lead: Lead | ErasedLead;
  /** Grows with every change of the lead: the higher one is the newer state, and is what an acknowledgement names. */
  readonly revision: number;
  /** When the first of the changes happened. */
  readonly since: Date;
  /** Each kind once, with the time of its latest change; oldest first. */
  readonly kinds: readonly { readonly kind: ChangeKind; readonly time: Date }[];
}

/**
 * The revision after one: at least the time of the change, in milliseconds. A database that was restored from a backup has forgotten
 * revisions that consumers have seen; the next ones are to be higher than those.
 */
export const nextRevision = (revision: number, time: Date): number => Math.max(revision + 1, time.getTime());

/** A state of a lead that a consumer has processed. */
export interface Acknowledgement {
  readonly studioId: string;
  readonly leadId: string;
  readonly revision: number;
}

/** How many acknowledgements can be made at once. */
export const MAX_ACKNOWLEDGEMENTS = 500;
