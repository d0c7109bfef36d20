import type { ServiceImpl } from '@connectrpc/connect';
import { type LeadIntakeService, LeadView as WireView } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { LeadView } from '../domain/lead.ts';
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

    async getLead({ studioId, leadId, view: wireView }) {
      const view = viewOf(wireView);
      return { lead: leadToWire(await getLead(deps, { studioId, leadId, view }), view) };
    },

    async listLeads({ studioId, pageSize, pageToken, view: wireView }) {
      const view = viewOf(wireView);
      const { leads, nextPageToken } = await listLeads(deps, { studioId, pageSize, pageToken, view });
      return { leads: leads.map((lead) => leadToWire(lead, view)), nextPageToken };
    },

    async changeLeadStage({ studioId, leadId, stage }) {
      const lead = await changeLeadStage(deps, { studioId, leadId, stage: leadStage.fromWire(stage) });
      return { lead: leadToWire(lead, 'full') };
    },
  };
}

function viewOf(view: WireView): LeadView | undefined {
  if (view === WireView.FULL) return 'full';
  return view === WireView.UNSPECIFIED || view === WireView.BASIC ? 'basic' : undefined;
}
