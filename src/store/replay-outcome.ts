import { type Fingerprint, sameData } from '../domain/fingerprint.ts';
import type { CreateLeadOutcome, EarlierCreation, ErasedCreation } from './store.ts';

/** What becomes of a creation whose key has created a lead before: that lead again for the same data, else a conflict. @rule 4.1.2 */
export function replayOutcome(earlier: EarlierCreation | ErasedCreation, repeated: Fingerprint): CreateLeadOutcome {
  if ('kind' in earlier) return earlier;
  return sameData(earlier.fingerprint, repeated)
    ? { kind: 'replayed', lead: earlier.lead }
    : { kind: 'idempotency-conflict' };
}
