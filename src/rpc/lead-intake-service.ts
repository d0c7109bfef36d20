import type { ServiceImpl } from '@connectrpc/connect';
import {
  type CreateLeadRequest,
  type GetLeadRequest,
  LeadIntakeService,
  type ListLeadsRequest,
  LeadView as WireView,
} from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { LeadView } from '../domain/lead.ts';
import { Faults } from '../domain/refusal.ts';
import type { Credential } from '../store/store.ts';
import { changeLeadStage } from '../usecases/change-lead-stage.ts';
import { createLead } from '../usecases/create-lead.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { eraseContact } from '../usecases/erase-contact.ts';
import { eraseLead } from '../usecases/erase-lead.ts';
import { findLeads } from '../usecases/find-leads.ts';
import { getLead } from '../usecases/get-lead.ts';
import { listLeads, pageLimit } from '../usecases/list-leads.ts';
import { updateLead } from '../usecases/update-lead.ts';
import { answerBatches } from './batches.ts';
import { operationOf } from './call.ts';
import { contactFromWire, erasedLeadToWire, leadStage, leadToWire, sourceIdFromWire } from './convert.ts';
import { leadExporter } from './export-leads.ts';
import { leadImporter } from './import-leads.ts';
import type { ItemContext } from './items.ts';
import { leadChangeMethods } from './lead-changes.ts';
import { updateFromWire } from './lead-update.ts';

/** A page of the longest leads has a megabyte: a message with more than a few would be too large for its reader. */
const PAGES_IN_A_MESSAGE = 3;

/** Leads over RPC. */
export function leadIntakeService(deps: Dependencies, context: ItemContext): ServiceImpl<typeof LeadIntakeService> {
  const { method } = LeadIntakeService;
  return {
    createLead: (request) => create(request),
    batchCreateLeads: (batches, handler) =>
      answerBatches(
        batches,
        context,
        {
          operation: operationOf(method.createLead),
          sourceIdOf: (request) => sourceIdFromWire(request.sourceId),
          answer: forBearer(create),
        },
        handler,
      ),

    getLead: get,
    batchGetLeads: (batches, handler) =>
      answerBatches(batches, context, { operation: operationOf(method.getLead), answer: forBearer(get) }, handler),

    listLeads: list,
    batchListLeads: (batches, handler) =>
      answerBatches(
        batches,
        context,
        {
          operation: operationOf(method.listLeads),
          leadsOf: ({ pageSize }) => pageLimit(pageSize),
          mostResults: PAGES_IN_A_MESSAGE,
          answer: forBearer(list),
        },
        handler,
      ),

    async findLeads({ studioId, contact, pageSize, pageToken }) {
      const query = { studioId, contact: contactFromWire(contact), pageSize, pageToken };
      const { leads, ...page } = await findLeads(deps, query);
      return { ...page, leads: leads.map((lead) => leadToWire(lead, 'full')) };
    },

    exportLeads: leadExporter(deps, context),

    ...leadChangeMethods(deps, context),

    importLeads: leadImporter(deps),

    eraseContact: ({ studioId, contact, memberId }) =>
      eraseContact(deps, { studioId, contact: contactFromWire(contact), memberId }),

    eraseLead: async (request) => ({ lead: erasedLeadToWire(await eraseLead(deps, request)) }),

    async changeLeadStage({ studioId, leadId, stage, memberId }) {
      const command = { studioId, leadId, stage: leadStage.fromWire(stage), memberId };
      const lead = await changeLeadStage(deps, command);
      return { lead: leadToWire(lead, 'full') };
    },

    async updateLead(request) {
      const faults = new Faults();
      const lead = await updateLead(deps, updateFromWire(request, faults), faults);
      return { lead: leadToWire(lead, 'full') };
    },
  };

  async function create(request: CreateLeadRequest, bearer?: Credential) {
    const { studioId, idempotencyKey, displayName, contact, sourceId, note } = request;
    const command = { studioId, idempotencyKey, displayName, contact: contactFromWire(contact), sourceId, note };
    const { lead, replayed } = await createLead(deps, command, bearer);
    return { lead: leadToWire(lead, 'basic'), replayed };
  }

  async function get({ studioId, leadId, view: wireView }: GetLeadRequest) {
    const view = viewOf(wireView);
    return { lead: leadToWire(await getLead(deps, { studioId, leadId, view }), view) };
  }

  async function list({ studioId, pageSize, pageToken, view: wireView }: ListLeadsRequest) {
    const view = viewOf(wireView);
    const { leads, nextPageToken } = await listLeads(deps, { studioId, pageSize, pageToken, view });
    return { leads: leads.map((lead) => leadToWire(lead, view)), nextPageToken };
  }
}

/** What came with a key is about the key's studio, and names none itself. @rule 1.own-studio 5.2 */
function forBearer<Request extends { studioId: string }, Response>(
  answer: (request: Request, bearer?: Credential) => Promise<Response>,
) {
  return async (request: Request, bearer?: Credential): Promise<Response> => {
    if (!bearer) return answer(request);
    const faults = new Faults();
    if (request.studioId !== '') faults.note('studioId', 'must be empty: it is the studio of the key');
    faults.refuseIfAny();
    // Into the message itself: so the line about it in the log tells of the studio, too.
    request.studioId = bearer.studio.id;
    return answer(request, bearer);
  };
}

function viewOf(view: WireView): LeadView | undefined {
  if (view === WireView.FULL) return 'full';
  return view === WireView.UNSPECIFIED || view === WireView.BASIC ? 'basic' : undefined;
}
