import { expect } from 'vitest';
import type { Correction } from '../../src/domain/correction.ts';
import type { Lead, LeadStage } from '../../src/domain/lead.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead, claimsOf, NOW, STUDIO_ID } from '../support/builders.ts';

export const OPEN_STAGES: readonly LeadStage[] = ['new', 'contacted', 'trial_booked', 'trial_attended'];
export const CLOSED_STAGES: readonly LeadStage[] = ['won', 'lost'];

/** Calls that most contract tests make on the store of the current test, with the outcome that they usually expect. */
export function actionsOn(store: () => Store) {
  return {
    async created(lead: Lead = aLead(), claims = claimsOf(lead)): Promise<Lead> {
      expect(await store().createLead(lead, claims)).toEqual({ kind: 'created', lead });
      return lead;
    },
    async moved(lead: Lead, stage: LeadStage, options: { now?: Date; claims?: Claims } = {}): Promise<Lead> {
      const outcome = await moveLead(store(), lead, stage, options);
      if (outcome.kind !== 'changed') throw new Error(`the lead was not moved: ${outcome.kind}`);
      return outcome.lead;
    },
    everyLead: (studioId = STUDIO_ID) => leadsIn(store(), studioId, null, 1000),
  };
}

type Claims = Parameters<Store['changeLeadStage']>[0]['claims'];

export const moveLead = (
  store: Store,
  lead: Lead,
  stage: LeadStage,
  { now = NOW, claims = claimsOf(lead) }: { now?: Date; claims?: Claims } = {},
) => store.changeLeadStage({ studioId: lead.studioId, leadId: lead.id, stage, claims, memberId: null, now });

export const correctLead = (store: Store, lead: Lead, correction: Correction, now = NOW) =>
  store.updateLead({
    studioId: lead.studioId,
    leadId: lead.id,
    correction,
    claims: claimsOf({ ...lead, ...correction }),
    expectedUpdatedAt: null,
    memberId: null,
    now,
  });

export const leadsIn = async (store: Store, ...page: Parameters<Store['listLeads']>): Promise<readonly Lead[]> =>
  (await store.listLeads(...page)).records;

export const sourcesIn = async (store: Store, studioId: string) =>
  (await store.listLeadSources(studioId, null, 2000)).records;
