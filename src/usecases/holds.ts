import { crmIdFault, reasonFault, uuidFault } from '../../common/rules/field-rules.ts';
import { type Requester, requestIdentity } from '../domain/audit.ts';
import { type Hold, UNREADABLE_REASON } from '../domain/hold.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { PutHoldOutcome } from '../store/store.ts';
import type { Changing } from './dependencies.ts';
import { noteRequester, requestedBy } from './requests.ts';

/** What is held: a lead, or a whole studio; not yet checked. */
export interface HeldCommand extends Requester {
  readonly studioId: string;
  readonly leadId?: string | undefined;
  readonly wholeStudio: boolean;
}

/**
 * Puts a hold on a lead or a whole studio. While it stands, nothing erases the lead, or any of the studio.
 *
 * @returns null: it was removed between a call and its repetition
 * @throws Refusal INVALID_REQUEST, LEAD_NOT_FOUND (also an erased one), STUDIO_NOT_FOUND
 */
export async function putHold(deps: Changing, command: HeldCommand & Pick<Hold, 'reason'>): Promise<Hold | null> {
  const faults = new Faults();
  const isReserved = command.reason === UNREADABLE_REASON;
  faults.note('reason', isReserved ? `must not be ${UNREADABLE_REASON}` : reasonFault(command.reason));
  return (await changeHold(deps, command, command.reason, faults)).hold;
}

/** Removes a hold. @returns it; null: there was none, or the call is a repetition @throws Refusal as putHold */
export const removeHold = async (deps: Changing, command: HeldCommand): Promise<Hold | null> =>
  (await changeHold(deps, command, null, new Faults())).before;

async function changeHold(
  { store, clock }: Changing,
  { studioId, leadId: given, wholeStudio, requestId, ...by }: HeldCommand,
  reason: string | null,
  faults: Faults,
): Promise<Extract<PutHoldOutcome, { kind: 'put' }>> {
  faults.note('studioId', crmIdFault(studioId));
  if (given !== undefined) faults.note('leadId', uuidFault(given));
  if (wholeStudio === (given !== undefined)) faults.note('leadId', 'must be given, or else wholeStudio');
  noteRequester(faults, { memberId: by.memberId, requestId });
  faults.refuseIfAny();
  const leadId = given?.toLowerCase() ?? null;
  const operation = reason === null ? 'remove hold' : 'put hold';
  const identity = requestIdentity(requestId, operation, studioId, ...(leadId === null ? [] : [leadId]));
  const outcome = await store.putHold({ studioId, leadId, reason, ...requestedBy(by, clock, identity) });
  if (outcome.kind === 'not-found') throw new Refusal(leadId === null ? 'STUDIO_NOT_FOUND' : 'LEAD_NOT_FOUND');
  return outcome;
}
