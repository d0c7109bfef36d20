import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import { type Requester, requestIdentity } from '../domain/audit.ts';
import { toContactKeys } from '../domain/contact.ts';
import type { LeadOfStudio, LeadStage } from '../domain/lead.ts';
import { type Correction, type GivenLeadData, noteLeadFaults } from '../domain/lead-data.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { LeadState, UpdateLeadOutcome } from '../store/port/lead-changes.ts';
import type { Changing } from './dependencies.ts';
import { noteRequester, requestedBy } from './requests.ts';
import { findRegions } from './studios.ts';

export interface ChangeLeadStageCommand extends Requester, LeadOfStudio {
  readonly stage: LeadStage | undefined;
  /** The `updatedAt` that the lead must still have; undefined: any. */
  readonly expectedUpdatedAt?: Date | undefined;
}

/**
 * Moves a lead to any stage.
 *
 * @param faults the faults found while the command was parsed
 * @throws Refusal INVALID_REQUEST, LEAD_NOT_FOUND, UPDATE_TIME_MISMATCH, LEAD_ALREADY_OPEN
 * @rule 3.1.moves
 */
export async function changeLeadStage(
  { store, clock }: Changing,
  command: ChangeLeadStageCommand,
  faults = new Faults(),
): Promise<LeadState> {
  const { studioId, stage, expectedUpdatedAt = null } = command;
  const leadId = command.leadId.toLowerCase();
  faults.note('studioId', crmIdFault(studioId));
  faults.note('leadId', uuidFault(leadId));
  noteRequester(faults, command);
  if (!stage) faults.note('stage', 'must be given');
  faults.refuseIfAny();

  const requestId = requestIdentity(command.requestId, 'change lead stage', studioId, leadId);
  for (;;) {
    const lead = await store.findLead(studioId, leadId);
    if (!lead) throw new Refusal('LEAD_NOT_FOUND');
    const { contact } = lead;
    // A reopened lead takes the keys that its contact has in the studio's current region.
    const keys = { contact, ...toContactKeys(contact, await findRegions(store, studioId)) };
    const change = { studioId, leadId, stage: stage as LeadStage, keys, expectedUpdatedAt };
    const outcome = await store.changeLeadStage({ ...change, ...requestedBy(command, clock, requestId) });
    // The contact was corrected concurrently: retry with the new one.
    if (outcome.kind !== 'other-contact') return leadAfter(outcome);
  }
}

/** An unchecked request to correct a lead. An absent field does not change; null removes its value. */
export interface UpdateLeadCommand extends Requester, LeadOfStudio {
  readonly fields: Partial<GivenLeadData>;
  /** The `updatedAt` that the lead must still have; undefined: any. */
  readonly expectedUpdatedAt?: Date | undefined;
}

/**
 * Corrects a lead.
 *
 * @param faults the faults found while the command was parsed
 * @throws Refusal INVALID_REQUEST, LEAD_NOT_FOUND, UPDATE_TIME_MISMATCH, SOURCE_INVALID, LEAD_ALREADY_OPEN
 */
export async function updateLead(
  { store, clock }: Changing,
  command: UpdateLeadCommand,
  faults = new Faults(),
): Promise<LeadState> {
  const { studioId, fields, expectedUpdatedAt = null } = command;
  faults.note('studioId', crmIdFault(studioId));
  faults.note('lead.id', uuidFault(command.leadId));
  noteLeadFaults(faults, fields, 'lead.');
  noteRequester(faults, command);
  faults.refuseIfAny();
  const leadId = command.leadId.toLowerCase();
  const sourceId = fields.sourceId?.toLowerCase();
  const correction = { ...fields, ...(sourceId !== undefined && { sourceId }) } as Correction;

  const requestId = requestIdentity(command.requestId, 'update lead', studioId, leadId);
  const isRepetition = requestId !== undefined && (await store.isLeadChangeApplied(studioId, leadId, requestId));
  const lead = await store.findLead(studioId, leadId);
  if (!lead) throw new Refusal('LEAD_NOT_FOUND');
  // A repetition skips these conditions, which held when the change was applied.
  if (!isRepetition && expectedUpdatedAt && expectedUpdatedAt.getTime() !== lead.updatedAt.getTime())
    throw new Refusal('UPDATE_TIME_MISMATCH');
  if (!isRepetition && sourceId !== undefined && sourceId !== lead.sourceId) {
    const source = await store.findLeadSource(studioId, sourceId);
    if (!source?.enabled) throw new Refusal('SOURCE_INVALID');
  }
  const keys = toContactKeys(correction.contact ?? lead.contact, await findRegions(store, studioId));
  const by = requestedBy(command, clock, requestId);
  return leadAfter(await store.updateLead({ studioId, leadId, correction, keys, expectedUpdatedAt, ...by }));
}

/** Returns the lead after a change. @throws Refusal if the change was not made */
function leadAfter(outcome: UpdateLeadOutcome): LeadState {
  switch (outcome.kind) {
    case 'not-found':
      throw new Refusal('LEAD_NOT_FOUND');
    case 'stale':
      throw new Refusal('UPDATE_TIME_MISMATCH');
    case 'already-open':
      throw new Refusal('LEAD_ALREADY_OPEN', 'The contact has another open lead.', {
        metadata: { leadId: outcome.leadId },
      });
    default:
      return outcome;
  }
}
