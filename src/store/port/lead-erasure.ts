import type { AuditContext } from '../../domain/audit.ts';
import type { ErasedLead } from '../../domain/lead.ts';
import type { LeadCommand } from './lead-changes.ts';

export type EraseLeadOutcome =
  /** `isNew`: this call erased it. */
  | { readonly kind: 'erased'; readonly lead: ErasedLead; readonly isNew: boolean }
  /** `stale`: the lead has changed since the expected time; nothing was written. */
  | { readonly kind: 'not-found' | 'stale' };

export interface LeadErasure extends LeadCommand {
  /** Returns `stale` if the lead's `updatedAt` differs; absent: any. */
  readonly expectedUpdatedAt?: Date;
}

export interface LeadDeletionStore {
  /**
   * Deletes the next `limit` leads of a studio, lowest id first, with their keys, events and deliveries. Only for test
   * studios, because consumers do not learn of it. The studio's event with the number of leads is stored with the
   * deletion, or before it.
   *
   * @returns the number of deleted leads; fewer than `limit`: there were no more
   */
  deleteLeads(studioId: string, limit: number, by: AuditContext): Promise<number>;

  /**
   * Deletes the tombstones of those of the given leads that were erased by `erasedUntil`. Must leave a lead with changes
   * from before the call that a stored consumer has not acknowledged, or may yet receive. DEFAULT_CONSUMER does not count,
   * because perhaps no program acknowledges its changes.
   *
   * @returns the number of deleted leads; fewer if a response was lost
   */
  deleteErasedLeads(studioId: string, leadIds: readonly string[], erasedUntil: Date): Promise<number>;
}

export interface LeadErasureStore extends LeadDeletionStore {
  /**
   * eraseLead must delete a lead's personal data in one write with its event: its texts, contact, source, enquiries and
   * original texts, and everything computed from these, including its uniqueness keys. Id, idempotency key, times and stage
   * remain. From then on no other method may return the lead, its contact is free, and its idempotency key yields
   * `erased`. A lead must be erased even if only its stage and times are readable, whatever its other fields, events
   * and changes are. A lead that is erased already is returned unchanged.
   *
   * @throws UnreadableRecord when stage or times are unreadable, without writing
   */
  eraseLead(erasure: LeadErasure): Promise<EraseLeadOutcome>;
}
