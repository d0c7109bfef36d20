import { type Fingerprint, sameData } from './fingerprint.ts';
import type { Lead } from './lead.ts';
import { Refusal } from './refusal.ts';

/**
 * The outcome of a creation. A replayed lead has its original texts, and its current contact and stage. An unreadable
 * stage is replaced by the first one.
 */
export type CreateLeadOutcome = { readonly kind: 'created' | 'replayed'; readonly lead: Lead } | NotCreated;

export type NotCreated =
  | { readonly kind: 'idempotency-conflict' }
  /** The idempotency key created a lead that has been erased since. */
  | { readonly kind: 'erased' }
  | { readonly kind: 'already-open'; readonly leadId: string };

/** The lead that an idempotency key created, as in CreateLeadOutcome, and the fingerprint of its data. */
export interface EarlierCreation {
  readonly lead: Lead;
  readonly fingerprint: Fingerprint;
}

/** An idempotency key whose lead was erased, its fingerprint included. */
export interface ErasedCreation {
  readonly kind: 'erased';
}

/**
 * Returns the outcome for a used idempotency key: the earlier lead if the data is the same, otherwise a conflict.
 * @rule 4.1.2
 */
export function replayOutcome(earlier: EarlierCreation | ErasedCreation, repeated: Fingerprint): CreateLeadOutcome {
  if ('kind' in earlier) return earlier;
  return sameData(earlier.fingerprint, repeated)
    ? { kind: 'replayed', lead: earlier.lead }
    : { kind: 'idempotency-conflict' };
}

export function refusalOfCreation(outcome: NotCreated): Refusal {
  switch (outcome.kind) {
    case 'idempotency-conflict':
      return new Refusal('IDEMPOTENCY_CONFLICT');
    case 'erased':
      // The fingerprint was erased too, so the data cannot be compared. A late retry must not recreate the person's data.
      return new Refusal('IDEMPOTENCY_CONFLICT', 'The lead that the idempotency key created was erased.', {
        metadata: { erased: 'true' },
      });
    case 'already-open':
      return new Refusal('LEAD_ALREADY_OPEN', undefined, { metadata: { leadId: outcome.leadId } });
  }
}
