import type { Lead } from '../domain/lead.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import { crmIdFault, uuidFault } from '../domain/rules/field-rules.ts';
import type { LeadStore } from '../store/store.ts';

/**
 * Reads a lead. Another studio's lead is refused in the same words as one that does not exist.
 *
 * @throws Refusal INVALID_REQUEST, LEAD_NOT_FOUND
 */
export async function getLead(
  { store }: { readonly store: Pick<LeadStore, 'findLead'> },
  { studioId, leadId }: { readonly studioId: string; readonly leadId: string },
): Promise<Lead> {
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  faults.note('leadId', uuidFault(leadId));
  faults.refuseIfAny();
  const lead = await store.findLead(studioId, leadId.toLowerCase());
  if (!lead) throw leadNotFound();
  return lead;
}

/** The refusal for a lead that is not in the studio. */
export const leadNotFound = () => new Refusal('LEAD_NOT_FOUND', 'There is no such lead.');
