import type { AuditContext } from '../../domain/audit.ts';
import type { ContactKeys, KeyedContact } from '../../domain/contact.ts';
import type { Lead, LeadOfStudio, LeadStage } from '../../domain/lead.ts';
import type { Correction } from '../../domain/lead-data.ts';

/** A lead and its revision in the change feed. */
export interface LeadState {
  readonly lead: Lead;
  readonly revision: number;
}

/** The outcome of an update; `stale`: the lead has changed since the expected time, and nothing was written. */
export type UpdateLeadOutcome =
  | ({ readonly kind: 'changed' | 'unchanged' } & LeadState)
  | { readonly kind: 'already-open'; readonly leadId: string }
  | { readonly kind: 'not-found' | 'stale' };

export type ChangeLeadStageOutcome = UpdateLeadOutcome | { readonly kind: 'other-contact' };

export interface LeadCommand extends AuditContext, LeadOfStudio {}

export interface LeadStageChange extends LeadCommand {
  readonly stage: LeadStage;
  /** The uniqueness keys that a reopened lead takes. A closed lead is also found by them. */
  readonly keys: KeyedContact;
  /** Null: any. */
  readonly expectedUpdatedAt: Date | null;
}

export interface LeadUpdate extends LeadCommand {
  readonly correction: Correction;
  /** The uniqueness keys of the new contact. */
  readonly keys: ContactKeys;
  /** Null: any. */
  readonly expectedUpdatedAt: Date | null;
}

export interface LeadChangeStore {
  /**
   * changeLeadStage must move a lead to a stage and store an event, in one write. It must check `expectedUpdatedAt`
   * first: returns `stale` if the lead's `updatedAt` differs. Returns `unchanged`, and writes nothing, if the lead is in that
   * stage already. `updatedAt` becomes `now`, but grows by at least a millisecond.
   *
   * - Closing must free the lead's keys in the same write. From then on, the freed and the given keys find the lead.
   *   Reopening must take the given keys in the same write. It returns `already-open`, and writes nothing, if another
   *   lead holds one of them.
   * - A lead that stays open, or stays closed, must keep its contact keys.
   * - Closing or reopening a lead whose contact differs from `keys.contact` returns `other-contact` and writes
   *   nothing.
   *
   * @throws UnreadableRecord, without writing
   */
  changeLeadStage(change: LeadStageChange): Promise<ChangeLeadStageOutcome>;

  /**
   * updateLead must change some fields of a lead and store an event, in one write. It must check `expectedUpdatedAt`
   * first: returns `stale` if the lead's `updatedAt` differs. Returns `unchanged`, and writes nothing, if all values
   * are equal already. Otherwise `updatedAt` grows as in changeLeadStage.
   *
   * - A new contact of an open lead must free the old keys and take the new ones in the same write. It returns
   *   `already-open`, and writes nothing, if another lead holds one of them.
   * - A new contact of a closed lead takes nothing. From then on, the new keys find the lead.
   * - An unchanged contact keeps its keys.
   * - The first update must store the lead's original texts, for replays.
   *
   * @throws UnreadableRecord, without writing
   */
  updateLead(change: LeadUpdate): Promise<UpdateLeadOutcome>;
}
