import { type Fingerprint, sameData } from '../../domain/lead.ts';
import type { CreateLeadOutcome, EarlierCreation, ErasedCreation } from '../store.ts';

/**
 * The outcome of a creation with a used idempotency key: the earlier lead if the data is the same, else a conflict.
 * @rule 4.1.2
 */
export function replayOutcome(earlier: EarlierCreation | ErasedCreation, repeated: Fingerprint): CreateLeadOutcome {
  if ('kind' in earlier) return earlier;
  return sameData(earlier.fingerprint, repeated)
    ? { kind: 'replayed', lead: earlier.lead }
    : { kind: 'idempotency-conflict' };
}
