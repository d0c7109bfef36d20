import type { ServiceImpl } from '@connectrpc/connect';
import { type LeadIntakeService, LeadView as WireView } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { LeadView } from '../domain/lead.ts';
import { Faults } from '../domain/refusal.ts';
import { changeLeadStage } from '../usecases/change-lead-stage.ts';
import { createLead } from '../usecases/create-lead.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { eraseContact } from '../usecases/erase-contact.ts';
import { eraseLead } from '../usecases/erase-lead.ts';
import { findLeads } from '../usecases/find-leads.ts';
import { getLead } from '../usecases/get-lead.ts';
import { listLeads } from '../usecases/list-leads.ts';
import { updateLead } from '../usecases/update-lead.ts';
import { actorOf } from './caller-access.ts';
import { contactFromWire, erasedLeadToWire, leadStage, leadToWire } from './convert.ts';
import type { ExchangeContext } from './exchange-service.ts';
import { leadExporter } from './export-leads.ts';
import { leadImporter } from './import-leads.ts';
import { leadChangeMethods } from './lead-changes.ts';
import { updateFromWire } from './lead-update.ts';

export function leadIntakeService(
  deps: Dependencies,
  context: Pick<ExchangeContext, 'run' | 'ending'>,
): ServiceImpl<typeof LeadIntakeService> {
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
      const { leads, ...page } = await listLeads(deps, { studioId, pageSize, pageToken, view });
      return { ...page, leads: leads.map((lead) => leadToWire(lead, view)) };
    },

    async findLeads({ studioId, contact, pageSize, pageToken }) {
      const query = { studioId, contact: contactFromWire(contact), pageSize, pageToken };
      const { leads, ...page } = await findLeads(deps, query);
      return { ...page, leads: leads.map((lead) => leadToWire(lead, 'full')) };
    },

    exportLeads: leadExporter(deps, context),

    ...leadChangeMethods(deps, context),

    importLeads: leadImporter(deps),

    eraseContact: ({ studioId, contact, memberId }, context) =>
      eraseContact(deps, { studioId, contact: contactFromWire(contact), memberId, ...actorOf(context) }),

    async eraseLead({ studioId, leadId, memberId }, context) {
      return { lead: erasedLeadToWire(await eraseLead(deps, { studioId, leadId, memberId, ...actorOf(context) })) };
    },

    async changeLeadStage({ studioId, leadId, stage, memberId, requestId }, context) {
      const command = { studioId, leadId, stage: leadStage.fromWire(stage), memberId, requestId, ...actorOf(context) };
      const lead = await changeLeadStage(deps, command);
      return { lead: leadToWire(lead, 'full') };
    },

    async updateLead(request, context) {
      const faults = new Faults();
      const command = { ...updateFromWire(request, faults), ...actorOf(context) };
      const lead = await updateLead(deps, command, faults);
      return { lead: leadToWire(lead, 'full') };
    },
  };
}

function viewOf(view: WireView): LeadView | undefined {
  if (view === WireView.FULL) return 'full';
  return view === WireView.UNSPECIFIED || view === WireView.BASIC ? 'basic' : undefined;
}
