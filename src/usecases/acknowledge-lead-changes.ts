import { assert } from '../../common/invariants.ts';
import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import { type Acknowledgement, MAX_ACKNOWLEDGEMENTS } from '../domain/lead-change.ts';
import { Faults } from '../domain/refusal.ts';
import type { LeadChangeStore } from '../store/store.ts';
import type { LeadChangePoller } from './lead-change-poller.ts';

/**
 * Acknowledges lead changes that a consumer has processed. A lead that has changed since keeps its newer changes
 * unacknowledged.
 *
 * @returns the number of leads whose last unacknowledged changes this call acknowledged
 * @throws Refusal INVALID_REQUEST
 */
export async function acknowledgeLeadChanges(
  { store }: { readonly store: Pick<LeadChangeStore, 'acknowledgeLeadChanges'> },
  poller: Pick<LeadChangePoller, 'hurry'>,
  acknowledgements: readonly Acknowledgement[],
): Promise<number> {
  const faults = new Faults();
  if (acknowledgements.length > MAX_ACKNOWLEDGEMENTS) {
    faults.note('acknowledgements', `must have at most ${MAX_ACKNOWLEDGEMENTS} elements`);
  }
  for (const [index, { studioId, leadId, revision }] of acknowledgements.slice(0, MAX_ACKNOWLEDGEMENTS).entries()) {
    const field = `acknowledgements[${index}]`;
    faults.note(`${field}.studioId`, crmIdFault(studioId));
    faults.note(`${field}.leadId`, uuidFault(leadId));
    if (!Number.isSafeInteger(revision) || revision < 0) faults.note(`${field}.revision`, 'must be that of a change');
  }
  faults.refuseIfAny();
  const acknowledged = await store.acknowledgeLeadChanges(
    acknowledgements.map((each) => ({ ...each, leadId: each.leadId.toLowerCase() })),
  );
  assert(acknowledged <= acknowledgements.length, 'acknowledged_at_most_named');
  if (acknowledged > 0) poller.hurry();
  return acknowledged;
}
