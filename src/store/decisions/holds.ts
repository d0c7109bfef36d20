import { actorIn } from '../../domain/audit.ts';
import type { Hold } from '../../domain/hold.ts';
import type { HoldPut, PutHoldOutcome } from '../store.ts';
import type { Decision } from './decision.ts';

/** @param found what has the hold: a lead that is not erased, or a studio */
export function decideHold(
  found: { readonly hold: Hold | null } | null,
  { leadId, reason, now: time, ...by }: HoldPut,
  isApplied: boolean,
): Decision<PutHoldOutcome, { readonly hold: Hold | null }> {
  if (!found) return { outcome: { kind: 'not-found' } };
  const { hold: before } = found;
  const from = before?.reason ?? null;
  if (isApplied || from === reason) return { outcome: { kind: 'put', before: null, hold: before }, write: null };
  const hold = reason === null ? null : { reason, createdAt: time };
  const action = leadId === null ? 'studio-hold-changed' : 'lead-hold-changed';
  return {
    outcome: { kind: 'put', before, hold },
    write: { hold },
    events: [{ action, ...actorIn(by), time, from, to: reason }],
  };
}
