import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import { type Requester, requestIdentity } from '../domain/audit.ts';
import { openClaims } from '../domain/contact.ts';
import type { Lead, LeadStage } from '../domain/lead.ts';
import type { Clock } from '../domain/new-id.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { DirectoryStore, LeadStore } from '../store/store.ts';
import { leadNotFound } from './get-lead.ts';
import { regionsOf } from './keep-directory.ts';

interface StageChangeDependencies {
  readonly store: Pick<LeadStore, 'findLead' | 'changeLeadStage'> & Pick<DirectoryStore, 'findStudio'>;
  readonly clock: Clock;
}

/** A request to move a lead, not yet checked. */
export interface ChangeLeadStageCommand extends Requester {
  readonly studioId: string;
  readonly leadId: string;
  readonly stage: LeadStage | undefined;
}

/**
 * Moves a lead to any stage.
 *
 * @throws Refusal INVALID_REQUEST, LEAD_NOT_FOUND, LEAD_ALREADY_OPEN
 * @rule 3.1.moves
 */
export async function changeLeadStage(
  { store, clock }: StageChangeDependencies,
  command: ChangeLeadStageCommand,
): Promise<Lead> {
  const { studioId, stage } = command;
  const leadId = command.leadId.toLowerCase();
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  faults.note('leadId', uuidFault(leadId));
  if (command.memberId !== undefined) faults.note('memberId', crmIdFault(command.memberId));
  if (command.requestId !== undefined) faults.note('requestId', uuidFault(command.requestId));
  if (!stage) faults.note('stage', 'must be given');
  faults.refuseIfAny();

  const requestId = requestIdentity(command.requestId, 'change lead stage', studioId, leadId);
  for (;;) {
    const lead = await store.findLead(studioId, leadId);
    if (!lead) throw leadNotFound();
    const { contact } = lead;
    // A lead that is reopened claims its contact by the current region.
    const regions = await regionsOf(store, studioId);
    const outcome = await store.changeLeadStage({
      studioId,
      leadId,
      stage: stage as LeadStage,
      claims: { contact, ...openClaims(contact, regions) },
      memberId: command.memberId ?? null,
      caller: command.caller,
      now: clock(),
      requestId,
    });
    switch (outcome.kind) {
      case 'changed':
      case 'unchanged':
        return outcome.lead;
      case 'not-found':
        throw leadNotFound();
      case 'already-open':
        throw new Refusal('LEAD_ALREADY_OPEN', 'The contact has another open lead.', {
          metadata: { leadId: outcome.leadId },
        });
      case 'other-contact':
      // The contact was corrected concurrently: retry with the new one.
    }
  }
}
