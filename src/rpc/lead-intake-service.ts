import { create, isFieldSet } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import {
  ExportContactResponseSchema,
  LeadHistorySchema,
  LeadImportedSchema,
  type LeadIntakeService,
  LeadSchema,
  type UpdateLeadRequest,
  WatchLeadChangesResponseSchema,
  type LeadImport as WireImport,
  LeadStage as WireStage,
  LeadView as WireView,
} from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { CallerRole } from '../domain/caller.ts';
import { type Consumer, DEFAULT_CONSUMER } from '../domain/consumer.ts';
import type { LeadView } from '../domain/lead.ts';
import { refusalOfCreation } from '../domain/lead-creation.ts';
import { DATA_FIELDS } from '../domain/lead-data.ts';
import { Faults, type Refusal } from '../domain/refusal.ts';
import {
  acknowledgeLeadChanges,
  checkedHeartbeat,
  LeadChangePollers,
  pullLeadChanges,
  resendLeads,
  watchLeadChanges,
} from '../usecases/change-feed.ts';
import { changeLeadStage, type UpdateLeadCommand, updateLead } from '../usecases/change-lead.ts';
import { countLeads } from '../usecases/count-leads.ts';
import { createLead } from '../usecases/create-lead.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { eraseContact, eraseLead } from '../usecases/erase-leads.ts';
import { exportContact } from '../usecases/export-contact.ts';
import { exportLeads } from '../usecases/export-leads.ts';
import { type ImportedLead, importLeads, type LeadImport } from '../usecases/import-leads.ts';
import { listLeadEvents } from '../usecases/lead-events.ts';
import { findLeads, getLead, listLeads } from '../usecases/read-leads.ts';
import { consumerNamed, readActor, readCaller, refuseOtherConsumers } from './callers.ts';
import {
  contactFromWire,
  countsToWire,
  dateFromWire,
  durationMsFromWire,
  epochToWire,
  erasedLeadToWire,
  filterFromWire,
  leadChangeToWire,
  leadDataFromWire,
  leadEventToWire,
  leadRecordToWire,
  leadStage,
  leadStateToWire,
  leadToWire,
  rangeFromWire,
} from './convert.ts';
import { toConnectError, toStatus } from './refusals.ts';
import { connectionDraining } from './run-call.ts';
import { runStream, type StreamContext, throwIfStopping } from './run-stream.ts';
import { takeUntil } from './take-until.ts';

type Service = ServiceImpl<typeof LeadIntakeService>;

export function leadIntakeService(deps: Dependencies, { run, ending }: StreamContext): Service {
  return {
    ...changeFeed(deps, { run, ending }),
    ...leadExports(deps, { run, ending }),

    async createLead({ studioId, idempotencyKey, ...data }, context) {
      const command = { studioId, idempotencyKey, ...leadDataFromWire(data) };
      const { lead, replayed } = await createLead(deps, command, undefined, { memberId: null, ...readActor(context) });
      return { lead: leadToWire(lead, 'basic'), replayed };
    },

    async getLead({ studioId, leadId, view: wireView }) {
      const view = viewFromWire(wireView);
      return { lead: leadToWire(await getLead(deps, { studioId, leadId, view }), view) };
    },

    async listLeads({ studioId, pageSize, pageToken, view: wireView, filter: wireFilter }) {
      const [view, filter] = [viewFromWire(wireView), filterFromWire(wireFilter)];
      const { leads, ...page } = await listLeads(deps, { studioId, pageSize, pageToken, view, filter });
      return { ...page, leads: leads.map((lead) => leadToWire(lead, view)) };
    },

    async countLeads({ studioId, filter }) {
      return countsToWire(await countLeads(deps, { studioId, filter: filterFromWire(filter) }));
    },

    async listLeadEvents({ studioId, leadId }) {
      return { events: (await listLeadEvents(deps, { studioId, leadId })).map(leadEventToWire) };
    },

    async findLeads({ studioId, contact, pageSize, pageToken }) {
      const query = { studioId, contact: contactFromWire(contact), pageSize, pageToken };
      const { leads, ...page } = await findLeads(deps, query);
      return { ...page, leads: leads.map((lead) => leadToWire(lead, 'full')) };
    },

    async importLeads({ studioId, leads }, context) {
      const command = { studioId, leads: leads.map(importFromWire), ...readActor(context) };
      const imported = await importLeads(deps, command);
      return { results: imported.map((result) => ({ outcome: outcomeToWire(result) })) };
    },

    async changeLeadStage({ studioId, leadId, stage: wireStage, memberId, requestId, expectedUpdateTime }, context) {
      const faults = new Faults();
      const expectedUpdatedAt = expectedFromWire(expectedUpdateTime, faults);
      const stage = leadStage.fromWire(wireStage);
      const command = { studioId, leadId, stage, expectedUpdatedAt, memberId, requestId, ...readActor(context) };
      return leadStateToWire(await changeLeadStage(deps, command, faults));
    },

    async updateLead(request, context) {
      const faults = new Faults();
      const command = { ...updateFromWire(request, faults), ...readActor(context) };
      return leadStateToWire(await updateLead(deps, command, faults));
    },

    eraseContact: ({ studioId, contact, memberId }, context) =>
      eraseContact(deps, { studioId, contact: contactFromWire(contact), memberId, ...readActor(context) }),

    async eraseLead({ studioId, leadId, memberId }, context) {
      return { lead: erasedLeadToWire(await eraseLead(deps, { studioId, leadId, memberId, ...readActor(context) })) };
    },
  };
}

/** Implements the methods that send page after page, or lead after lead, as fast as the caller reads. */
function leadExports(
  deps: Dependencies,
  { run, ending }: StreamContext,
): Pick<Service, 'exportLeads' | 'exportContact'> {
  return {
    exportLeads({ studioId, resumeToken, filter: wireFilter, ...includes }, context) {
      /** The fields that the log line has instead of the request. */
      const summary = { studioId, leads: 0 };
      return runStream(run, context, summary, async function* () {
        const { includeTestStudios: includesTests, includeEvents: includesEvents } = includes;
        const query = { studioId, resumeToken, includesTests, includesEvents, filter: filterFromWire(wireFilter) };
        for await (const { leads, events = [], ...page } of exportLeads(deps, query)) {
          throwIfStopping(ending, 'continue with the resume token');
          const histories = events.map((ofLead) => create(LeadHistorySchema, { events: ofLead.map(leadEventToWire) }));
          yield { ...page, leads: leads.map((lead) => leadToWire(lead, 'full')), histories };
          summary.leads += leads.length;
        }
      });
    },

    // The log line contains nothing about the contact.
    exportContact: ({ studioId, contact }, context) =>
      runStream(run, context, { studioId }, async function* () {
        for await (const each of exportContact(deps, { studioId, contact: contactFromWire(contact) })) {
          throwIfStopping(ending, 'call again');
          yield create(ExportContactResponseSchema, 'lead' in each ? leadRecordToWire(each) : each);
        }
      }),
  };
}

function changeFeed(
  deps: Dependencies,
  { run, ending }: StreamContext,
): Pick<Service, 'pullLeadChanges' | 'watchLeadChanges' | 'acknowledgeLeadChanges' | 'resendLeads'> {
  const pollers = new LeadChangePollers(deps);
  async function consumerIn(name: string, context: HandlerContext, roles?: readonly CallerRole[]): Promise<Consumer> {
    if (name !== '') return consumerNamed(deps, name, context, roles);
    refuseOtherConsumers(readCaller(context), name, roles);
    return DEFAULT_CONSUMER;
  }
  const epoch = async () => epochToWire(await deps.store.findEpoch());
  const createEndSignal = (context: HandlerContext) =>
    AbortSignal.any([context.signal, ending, readCaller(context).withdrawn, context.values.get(connectionDraining)]);
  return {
    async pullLeadChanges({ max, wait, consumer }, context) {
      const poller = pollers.of(await consumerIn(consumer, context));
      const sent = await pullLeadChanges(poller, { max, waitMs: durationMsFromWire(wait) }, createEndSignal(context));
      return { ...sent, ...(await epoch()), changes: sent.changes.map(leadChangeToWire) };
    },

    watchLeadChanges: (request, context) =>
      runStream(run, context, request, async function* () {
        const end = createEndSignal(context);
        const heartbeat = request.heartbeat && checkedHeartbeat(durationMsFromWire(request.heartbeat));
        const poller = pollers.of(await consumerIn(request.consumer, context));
        for await (const { changes, heldBack } of takeUntil(end, watchLeadChanges(poller, end, heartbeat))) {
          const sent = { changes: changes.map(leadChangeToWire), heldBack };
          yield create(WatchLeadChangesResponseSchema, { ...sent, ...(await epoch()) });
        }
      }),

    async acknowledgeLeadChanges({ acknowledgements, consumer: name }, context) {
      const consumer = await consumerIn(name, context);
      const converted = acknowledgements.map((each) => ({ ...each, revision: Number(each.revision) }));
      const acknowledged = await acknowledgeLeadChanges(deps, pollers.of(consumer), converted, consumer);
      const { applied, superseded, unknown } = acknowledged;
      return { acknowledgedCount: applied, supersededCount: superseded, unknownCount: unknown };
    },

    async resendLeads({ consumer: name, updateTime, ...which }, context) {
      const consumer = await consumerIn(name, context, ['crm', 'operator']);
      const updated = updateTime && rangeFromWire(updateTime);
      return resendLeads(deps, { ...which, updated, ...readActor(context) }, name === '' ? undefined : consumer);
    },
  };
}

function viewFromWire(view: WireView): LeadView | undefined {
  if (view === WireView.FULL) return 'full';
  return view === WireView.UNSPECIFIED || view === WireView.BASIC ? 'basic' : undefined;
}

/** The fields that an update mask may name. */
const PATHS = DATA_FIELDS.map((field) => LeadSchema.field[field].name);

/** Returns the update: the fields in the mask, or without a mask the present ones. Adds the mask's faults. */
function updateFromWire(request: UpdateLeadRequest, faults: Faults): UpdateLeadCommand {
  const { studioId, lead = create(LeadSchema), updateMask, expectedUpdateTime, memberId, requestId } = request;
  const paths = updateMask?.paths ?? [];
  if (lead.studioId !== '' && lead.studioId !== studioId) {
    faults.note('lead.studioId', 'must be empty, or the same as studioId');
  }
  if (paths.some((path) => !PATHS.includes(path))) {
    faults.note('updateMask', `must name ${PATHS.join(', ')} only; the contact is replaced whole`);
  }
  const given = leadDataFromWire(lead);
  const named = DATA_FIELDS.filter((field) => {
    const described = LeadSchema.field[field];
    return paths.length > 0 ? paths.includes(described.name) : isFieldSet(lead, described);
  });
  // A field that is named but absent loses its value, unless it is required.
  const fields = named.map((field) => [field, given[field]]);
  return {
    studioId,
    leadId: lead.id,
    fields: Object.fromEntries(fields),
    expectedUpdatedAt: expectedFromWire(expectedUpdateTime, faults),
    memberId,
    requestId,
  };
}

/** Returns the `updatedAt` that a lead must still have; undefined: any. Adds its faults. */
function expectedFromWire(time: Timestamp | undefined, faults: Faults): Date | undefined {
  if ((time?.nanos ?? 0) % 1_000_000 !== 0) {
    faults.note('expectedUpdateTime', 'must be in whole milliseconds, as the update_time of a lead is');
  }
  const expected = dateFromWire(time);
  if (Number.isNaN(expected?.getTime())) faults.note('expectedUpdateTime', 'must be a time from 1970 on');
  return expected;
}

function outcomeToWire(result: ImportedLead) {
  if (result.kind === 'refused') return refusalOutcome(result.refusal);
  const { kind, leadId } = result;
  // The caller has no id to recognise the lead by, so its key conflicts, as in any creation.
  if (leadId === null) return refusalOutcome(refusalOfCreation({ kind: 'erased' }));
  const value = create(LeadImportedSchema, { leadId, replayed: kind !== 'imported', erased: kind === 'erased' });
  return { case: 'imported', value } as const;
}

const refusalOutcome = (refusal: Refusal) => ({ case: 'error', value: toStatus(toConnectError(refusal)) }) as const;

function importFromWire({ leadId, idempotencyKey, stage, createTime, updateTime, ...data }: WireImport): LeadImport {
  return {
    leadId,
    idempotencyKey,
    ...leadDataFromWire(data),
    stage: stage === WireStage.UNSPECIFIED ? 'new' : leadStage.fromWire(stage),
    createdAt: dateFromWire(createTime),
    updatedAt: dateFromWire(updateTime),
  };
}
