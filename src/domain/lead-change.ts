import type { ErasedLead, Lead } from './lead.ts';

/** The kinds of change of a lead. */
export const CHANGE_KINDS = ['created', 'stage-changed', 'updated', 'resent', 'erased'] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** A lead's current state, with its changes since the last acknowledgement. */
export interface LeadChange {
  readonly lead: Lead | ErasedLead;
  /** Grows with every change of the lead, so the higher revision is the newer state. Acknowledgements refer to it. */
  readonly revision: number;
  /** The time of the first unacknowledged change. */
  readonly since: Date;
  /** Each kind once, with the time of its latest change; oldest first. */
  readonly kinds: readonly { readonly kind: ChangeKind; readonly time: Date }[];
}

/**
 * Returns the revision that follows one: at least the time of the change, in milliseconds. A database restored from a
 * backup has lost revisions that consumers have seen; using the time keeps new revisions higher than those.
 */
export const nextRevision = (revision: number, time: Date): number => Math.max(revision + 1, time.getTime());

/** A state of a lead that a consumer has processed. */
export interface Acknowledgement {
  readonly studioId: string;
  readonly leadId: string;
  readonly revision: number;
}

/** The maximum number of acknowledgements in a request. */
export const MAX_ACKNOWLEDGEMENTS = 500;
