import { assert } from '../../common/invariants.ts';
import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import type { Lead, LeadView } from '../domain/lead.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { LeadStore } from '../store/store.ts';

/** A request to read a lead, not yet checked. */
export interface GetLeadQuery {
  readonly studioId: string;
  readonly leadId: string;
  /** Undefined: unknown. */
  readonly view: LeadView | undefined;
}

/**
 * Reads a lead. Another studio's lead is indistinguishable from one that does not exist.
 *
 * @throws Refusal INVALID_REQUEST, LEAD_NOT_FOUND
 * @rule 1.own-studio 4.2.current-state 4.2.not-found
 */
export async function getLead(
  { store }: { readonly store: Pick<LeadStore, 'findLead'> },
  { studioId, leadId, view }: GetLeadQuery,
): Promise<Lead> {
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  faults.note('leadId', uuidFault(leadId));
  if (!view) faults.note('view', 'must be a known view');
  faults.refuseIfAny();
  const lead = await store.findLead(studioId, leadId.toLowerCase());
  if (!lead) throw leadNotFound();
  assert(lead.studioId === studioId, 'lead_of_studio');
  return lead;
}

export const leadNotFound = () => new Refusal('LEAD_NOT_FOUND', 'There is no such lead.');
