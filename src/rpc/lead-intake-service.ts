import type { ServiceImpl } from '@connectrpc/connect';
import { type LeadIntakeService, LeadView } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { Faults } from '../domain/refusal.ts';
import { changeLeadStage } from '../usecases/change-lead-stage.ts';
import { createLead } from '../usecases/create-lead.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { getLead } from '../usecases/get-lead.ts';
import { listLeads } from '../usecases/list-leads.ts';
import { contactFromWire, leadStage, leadToWire } from './convert.ts';

/** Leads over RPC. */
export function leadIntakeService(deps: Dependencies): ServiceImpl<typeof LeadIntakeService> {
  return {
    async createLead({ studioId, idempotencyKey, displayName, contact, sourceId, note }) {
      const command = { studioId, idempotencyKey, displayName, contact: contactFromWire(contact), sourceId, note };
      const { lead, replayed } = await createLead(deps, command);
      return { lead: leadToWire(lead, 'basic'), replayed };
    },

    async getLead({ studioId, leadId, view }) {
      const shown = viewOf(view);
      return { lead: leadToWire(await getLead(deps, { studioId, leadId }), shown) };
    },

    async listLeads({ studioId, pageSize, pageToken, view }) {
      const shown = viewOf(view);
      const { leads, nextPageToken } = await listLeads(deps, { studioId, pageSize, pageToken });
      return { leads: leads.map((lead) => leadToWire(lead, shown)), nextPageToken };
    },

    async changeLeadStage({ studioId, leadId, stage }) {
      const lead = await changeLeadStage(deps, { studioId, leadId, stage: leadStage.fromWire(stage) });
      return { lead: leadToWire(lead, 'full') };
    },
  };
}

function viewOf(view: LeadView): 'basic' | 'full' {
  if (view === LeadView.FULL) return 'full';
  const faults = new Faults();
  if (view !== LeadView.UNSPECIFIED && view !== LeadView.BASIC) faults.note('view', 'must be a known view');
  faults.refuseIfAny();
  return 'basic';
}
