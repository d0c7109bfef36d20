import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import type { Requester } from '../domain/audit.ts';
import type { ErasedLead } from '../domain/lead.ts';
import type { Clock } from '../domain/new-id.ts';
import { Faults } from '../domain/refusal.ts';
import type { LeadErasureStore } from '../store/store.ts';
import { leadNotFound } from './get-lead.ts';

/** A request to erase a lead, not yet checked. */
export interface EraseLeadCommand extends Requester {
  readonly studioId: string;
  readonly leadId: string;
}

/**
 * Erases the personal data of a lead. Erasing an erased lead changes nothing and returns it.
 *
 * @throws Refusal INVALID_REQUEST, LEAD_NOT_FOUND
 */
export async function eraseLead(
  { store, clock }: { readonly store: LeadErasureStore; readonly clock: Clock },
  { studioId, leadId, memberId, caller }: EraseLeadCommand,
): Promise<ErasedLead> {
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  faults.note('leadId', uuidFault(leadId));
  if (memberId !== undefined) faults.note('memberId', crmIdFault(memberId));
  faults.refuseIfAny();
  const outcome = await store.eraseLead({
    studioId,
    leadId: leadId.toLowerCase(),
    memberId: memberId ?? null,
    caller,
    now: clock(),
  });
  if (outcome.kind !== 'erased') throw leadNotFound();
  return outcome.lead;
}
