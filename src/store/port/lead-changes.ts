import type { AuditContext } from '../../domain/audit.ts';
import type { ClaimsOfContact, OpenClaims } from '../../domain/contact.ts';
import type { Lead, LeadStage } from '../../domain/lead.ts';
import type { Correction } from '../../domain/lead-data.ts';

/** A lead and its revision in the change feed. */
export interface LeadState {
  readonly lead: Lead;
  readonly revision: number;
}

export type ChangeLeadStageOutcome =
  | ({ readonly kind: 'changed' | 'unchanged' } & LeadState)
  | { readonly kind: 'already-open'; readonly leadId: string }
  /** The lead has changed since the expected time; nothing was written. */
  | { readonly kind: 'not-found' | 'stale' }
  | { readonly kind: 'other-contact' };

/** The outcome of an update; `stale`: the lead has changed since the expected time. */
export type UpdateLeadOutcome =
  | ({ readonly kind: 'updated' | 'unchanged' } & LeadState)
  | { readonly kind: 'already-open'; readonly leadId: string }
  | { readonly kind: 'not-found' | 'stale' };

export interface LeadCommand extends AuditContext {
  readonly studioId: string;
  readonly leadId: string;
}

export interface LeadStageChange extends LeadCommand {
  readonly stage: LeadStage;
  /** The claims of the lead when it is reopened, by which it is also found when it is closed. */
  readonly claims: ClaimsOfContact;
  /** Null: any. */
  readonly expectedUpdatedAt: Date | null;
}

export interface LeadUpdate extends LeadCommand {
  readonly correction: Correction;
  /** The claims of the new contact. */
  readonly claims: OpenClaims;
  /** Null: any. */
  readonly expectedUpdatedAt: Date | null;
}

export interface LeadChanges {
  /**
   * changeLeadStage must move a lead to a stage and store an event, in one write. It must check `expectedUpdatedAt`
   * first: returns `stale` if the lead's `updatedAt` differs. Returns `unchanged`, and writes
   * nothing, if the lead is in that stage already. `updatedAt` becomes `now`, but grows by a millisecond at least.
   *
   * - Closing must free the lead's claims in the same write; the lead is found by these and by the given ones from then
   *   on. Reopening must take the given ones in the same write; it returns `already-open`, and writes nothing, if
   *   another lead has one.
   * - A lead that stays open, or stays closed, must keep its contact keys.
   * - Closing or reopening a lead whose contact differs from `claims.contact` returns `other-contact` and writes
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
   * - A new contact of an open lead must free the old claims and take the new ones in the same write; it returns
   *   `already-open`, and writes nothing, if another lead has one.
   * - A new contact of a closed lead takes nothing; the lead is found by the new keys from then on.
   * - An unchanged contact keeps its claims.
   * - The first update must store what the lead was created with, for replays.
   *
   * @throws UnreadableRecord, without writing
   */
  updateLead(change: LeadUpdate): Promise<UpdateLeadOutcome>;
}
