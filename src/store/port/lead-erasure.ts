import type { AuditContext } from '../../domain/audit.ts';
import type { ErasedLead } from '../../domain/lead.ts';
import type { LeadCommand } from './lead-changes.ts';

export type EraseLeadOutcome =
  /** `isNew`: by this call. */
  | { readonly kind: 'erased'; readonly lead: ErasedLead; readonly isNew: boolean }
  /** `stale`: the lead has changed since the expected time; nothing was written. */
  | { readonly kind: 'not-found' | 'stale' };

export interface LeadErasure extends LeadCommand {
  /** Returns `stale` if the lead's `updatedAt` differs; absent: any. */
  readonly expectedUpdatedAt?: Date;
}

export interface LeadErasureStore {
  /**
   * eraseLead must delete a lead's personal data in one write with its event: name, contact, source, note, enquiries, what
   * it was created with, and everything computed from these, including its claims. Id, idempotency key, times and stage
   * remain. From then on no other method may return the lead, its contact is free, and its idempotency key yields
   * `erased`. A lead of which only the stage and times are readable must be erased, too, whatever its other fields, its
   * events and its changes are. A lead that is erased already is returned unchanged.
   *
   * @throws UnreadableRecord when stage or times are unreadable, without writing
   */
  eraseLead(erasure: LeadErasure): Promise<EraseLeadOutcome>;

  /**
   * Deletes the next `limit` leads of a studio, lowest id first, with their claims, keys, events and deliveries. Only of a
   * test studio: no consumer hears of it. An event of the studio with their number is stored with it, or
   * before it.
   *
   * @returns the number of deleted leads; fewer than `limit`: there were no more
   */
  deleteLeads(studioId: string, limit: number, by: AuditContext): Promise<number>;

  /**
   * Deletes those of some leads of a studio that were erased at a time or before, with all that is kept of them. Must leave one whose
   * changes a stored consumer has not acknowledged, or may yet be sent, as far as they were there before the call. DEFAULT_CONSUMER does not
   * count: perhaps nobody ever acknowledges for it.
   *
   * @returns the number of deleted leads; fewer where a response was lost
   */
  deleteErasedLeads(studioId: string, leadIds: readonly string[], erasedUntil: Date): Promise<number>;
}
