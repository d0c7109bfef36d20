import type { Actor } from '../../domain/audit.ts';
import type { Lead, LeadClaims } from '../../domain/lead.ts';
import type { CreateLeadOutcome } from '../../domain/lead-creation.ts';

export interface CreationOptions {
  /** When the creation's entry in the change feed begins; absent: at the lead's `createdAt`. */
  readonly now?: Date | undefined;
  readonly keepsEnquiry?: boolean | undefined;
  /** Who creates it, whom an event in the same write then names; absent: a visitor. */
  readonly by?: Actor | undefined;
}

export interface LeadCreation {
  /**
   * createLead must store a new lead and its claims in one write. It must check in this order:
   *
   * 1. If the idempotency key has created a lead in the studio, returns `replayed` (same fingerprint),
   *    `idempotency-conflict` (another one) or `erased`.
   * 2. If the lead is open and another open lead of the studio has one of its contact keys, returns `already-open`.
   *    With `keepsEnquiry`, what it says is then kept at that lead as decideEnquiry decides: in one write, while that lead has the
   *    key, and once for each idempotency key that the lead remembers, in any process and however often it is repeated.
   *    The lead's fields stay; it is marked in the change feed. No other outcome may keep anything.
   *
   * Exactly one of any number of concurrent calls with one idempotency key, or with a contact key in common, must
   * create. The claims of an unreadable lead must stay taken.
   *
   * @throws UnreadableRecord when the lead of the idempotency key is unreadable
   */
  createLead(lead: Lead, claims: LeadClaims, options?: CreationOptions): Promise<CreateLeadOutcome>;
}
