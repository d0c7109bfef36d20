import type { ServiceImpl } from '@connectrpc/connect';
import {
  type CreateLeadRequest,
  type GetLeadRequest,
  LeadIntakeService,
  type ListLeadsRequest,
  type Lead as WireLead,
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
import { executeBatches } from './batches.ts';
import { operationOf } from './call.ts';
import { actorOf } from './caller-access.ts';
import { contactFromWire, erasedLeadToWire, leadStage, leadToWire, sourceIdFromWire } from './convert.ts';
import { leadExporter } from './export-leads.ts';
import { leadImporter } from './import-leads.ts';
import type { ItemContext } from './items.ts';
import { leadChangeMethods } from './lead-changes.ts';
import { updateFromWire } from './lead-update.ts';

/** The maximum number of pages in a message. A page may have a megabyte, and clients limit the message size. */
const MAX_PAGES_PER_MESSAGE = 3;

export function leadIntakeService(deps: Dependencies, context: ItemContext): ServiceImpl<typeof LeadIntakeService> {
  return {
    createLead: (request) => create(request),
    getLead: get,
    listLeads: list,
    ...batchMethods(context, { create, get, list }),

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
    const { leads, ...page } = await listLeads(deps, { studioId, pageSize, pageToken, view });
    return { ...page, leads: leads.map((lead) => leadToWire(lead, view)) };
  }
}

/** The batch methods, which gateways of release 1.0 use. */
function batchMethods(context: ItemContext, { create, get, list }: SingleMethods): BatchMethods {
  const { method } = LeadIntakeService;
  return {
    batchCreateLeads: (batches, handler) =>
      executeBatches(
        batches,
        context,
        {
          operation: operationOf(method.createLead),
          scope: 'leads.create',
          sourceIdOf: (request) => sourceIdFromWire(request.sourceId),
          execute: forBearer(create),
        },
        handler,
      ),
    batchGetLeads: (batches, handler) =>
      executeBatches(
        batches,
        context,
        { operation: operationOf(method.getLead), scope: 'leads.read', execute: forBearer(get) },
        handler,
      ),
    batchListLeads: (batches, handler) =>
      executeBatches(
        batches,
        context,
        {
          operation: operationOf(method.listLeads),
          scope: 'leads.read',
          leadsOf: ({ pageSize }) => pageLimit(pageSize),
          maxResults: MAX_PAGES_PER_MESSAGE,
          execute: forBearer(list),
        },
        handler,
      ),
  };
}

type BatchMethods = Pick<
  ServiceImpl<typeof LeadIntakeService>,
  'batchCreateLeads' | 'batchGetLeads' | 'batchListLeads'
>;

interface SingleMethods {
  create(request: CreateLeadRequest, bearer?: Credential): Promise<{ lead: WireLead; replayed: boolean }>;
  get(request: GetLeadRequest): Promise<{ lead: WireLead }>;
  list(request: ListLeadsRequest): Promise<{ leads: WireLead[]; nextPageToken: string; skippedCount: number }>;
}

/** Executes a request with a key in the key's studio; the request itself must name none. @rule 1.own-studio 5.2 */
function forBearer<Request extends { studioId: string }, Response>(
  execute: (request: Request, bearer?: Credential) => Promise<Response>,
) {
  return async (request: Request, bearer?: Credential): Promise<Response> => {
    if (!bearer) return execute(request);
    const faults = new Faults();
    if (request.studioId !== '') faults.note('studioId', 'must be empty: it is the studio of the key');
    faults.refuseIfAny();
    // In the message itself, so that the log line has the studio too.
    request.studioId = bearer.studio.id;
    return execute(request, bearer);
  };
}

function viewOf(view: WireView): LeadView | undefined {
  if (view === WireView.FULL) return 'full';
  return view === WireView.UNSPECIFIED || view === WireView.BASIC ? 'basic' : undefined;
}
