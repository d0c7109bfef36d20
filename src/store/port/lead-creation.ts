import type { Actor } from '../../domain/audit.ts';
import type { Lead, LeadKeys } from '../../domain/lead.ts';
import type { CreateLeadOutcome } from '../../domain/lead-creation.ts';

export interface CreationOptions {
  /** The time of the creation in the change feed; absent: the lead's `createdAt`. */
  readonly now?: Date | undefined;
  readonly keepsEnquiry?: boolean | undefined;
  /** The creator, whom an event in the same write names; absent: a visitor. */
  readonly by?: Actor | undefined;
}

export interface LeadCreationStore {
  /**
   * createLead must store a new lead and its keys in one write. It must check in this order:
   *
   * 1. If the idempotency key has created a lead in the studio, returns `replayed` (same fingerprint),
   *    `idempotency-conflict` (another one) or `erased`.
   * 2. If the lead is open and another open lead of the studio has one of its contact keys, returns `already-open`.
   *    With `keepsEnquiry`, the enquiry must then be stored with that lead as decideEnquiry decides, in one write, while the
   *    lead holds the key. Enquiries are deduplicated by the idempotency keys that the lead remembers, across processes and
   *    retries. The lead's fields stay, and a change is pending for it. No other outcome may store an enquiry.
   *
   * Exactly one of concurrent calls with the same idempotency key, or with a common contact key, must create a lead. The
   * keys of an unreadable lead must stay taken.
   *
   * @throws UnreadableRecord when the lead of the idempotency key is unreadable
   */
  createLead(lead: Lead, keys: LeadKeys, options?: CreationOptions): Promise<CreateLeadOutcome>;
}
