import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DescMethod } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiKeyService } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { AuditService } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import { ConsumerService } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { DirectoryService } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { ExchangeService } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { LeadIntakeService } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { RequestLogService } from '../../proto/gen/leadintake/v1/request_log_pb.ts';
import {
  aCreateLeadRequest,
  findRefusal,
  type GrpcCaller,
  grpcCaller,
  startTestCore,
  type TestCore,
} from '../support/grpc.ts';
import { createKey, putSource } from '../support/grpc-studios.ts';

/**
 * Whether a retry of each method can undo what others wrote since the first call. `nothing`: clients retry
 * automatically. `by request_id`: nothing with that id. `something`: only the caller knows whether to retry.
 */
const REPETITIONS: Readonly<Record<string, 'nothing' | 'by request_id' | 'something' | 'a stream'>> = {
  CreateLead: 'nothing',
  GetLead: 'nothing',
  ListLeads: 'nothing',
  ExportLeads: 'a stream',
  ExportContact: 'a stream',
  FindLeads: 'nothing',
  CountLeads: 'nothing',
  ListLeadEvents: 'nothing',
  ChangeLeadStage: 'by request_id',
  UpdateLead: 'by request_id',
  ImportLeads: 'nothing',
  EraseLead: 'nothing',
  EraseContact: 'something',
  PullLeadChanges: 'nothing',
  WatchLeadChanges: 'a stream',
  AcknowledgeLeadChanges: 'nothing',
  ResendLeads: 'something',
  CreateConsumer: 'something',
  ListConsumers: 'nothing',
  RemoveConsumer: 'something',
  SetAsideLeadChanges: 'something',
  TakeBackLeadChanges: 'something',
  ListSetAsideLeadChanges: 'nothing',
  FindMissingLeads: 'nothing',
  Exchange: 'a stream',
  CreateApiKey: 'something',
  ListApiKeys: 'nothing',
  ReplaceApiKey: 'something',
  RevokeApiKey: 'nothing',
  AuthenticateApiKey: 'nothing',
  PutStudio: 'by request_id',
  EmptyStudio: 'something',
  EraseStudio: 'nothing',
  GetStudio: 'nothing',
  ListStudios: 'nothing',
  PutApiKeyQuota: 'by request_id',
  PutMember: 'by request_id',
  RemoveMember: 'by request_id',
  PutLeadSource: 'by request_id',
  RemoveLeadSource: 'by request_id',
  ListLeadSources: 'nothing',
  ListAuditEvents: 'nothing',
  RecordRequests: 'nothing',
  ListRequests: 'nothing',
  ExportAuditEvents: 'a stream',
};

const METHODS: readonly DescMethod[] = [
  ...LeadIntakeService.methods,
  ...ConsumerService.methods,
  ...ExchangeService.methods,
  ...ApiKeyService.methods,
  ...DirectoryService.methods,
  ...AuditService.methods,
  ...RequestLogService.methods,
];

const named = (kind: (typeof REPETITIONS)[string]) =>
  METHODS.flatMap(({ name }) => (REPETITIONS[name] === kind ? [name] : [])).sort();

// @proves crashes-19
describe('repetitions', () => {
  test('retries are classified for each method', () => {
    expect(Object.keys(REPETITIONS).sort()).toEqual(METHODS.map(({ name }) => name).sort());
    expect(METHODS.flatMap(({ name, methodKind }) => (methodKind === 'unary' ? [] : [name])).sort()).toEqual(
      named('a stream'),
    );
  });

  test('exactly the methods that need one have a request_id', () => {
    const having = METHODS.flatMap(({ name, methodKind, input }) =>
      methodKind === 'unary' && input.field.requestId ? [name] : [],
    );
    expect(having.sort()).toEqual(named('by request_id'));
  });

  test('exactly the methods whose retry undoes nothing are retried automatically', () => {
    const { methodConfig } = JSON.parse(
      readFileSync(join(import.meta.dirname, '../../proto/service-config.json'), 'utf8'),
    ) as { methodConfig: { name: { method: string }[] }[] };
    const automatic = methodConfig.flatMap(({ name }) => name.map(({ method }) => method));
    expect(automatic.sort()).toEqual(named('nothing'));
  });
});

/** A request, and what somebody else changes after it, which a retry must not undo. */
interface Case {
  readonly request: object;
  /** The rival's call. */
  readonly rival: readonly [method: string, request: object];
  /** A call that makes sure that the request has an effect. */
  readonly before?: readonly [method: string, request: object];
}

/** Creates a studio with one of everything. */
async function aStudioWithAll(caller: GrpcCaller) {
  const { owner } = await createKey(caller);
  const { studioId, memberId, apiKeyId } = owner;
  const { lead } = await caller.call<{ lead: { id: string } }>(
    'LeadIntakeService/CreateLead',
    aCreateLeadRequest(studioId),
  );
  const leadSource = { studioId, id: await putSource(caller, studioId), name: 'Form', enabled: true };
  const member = { studioId, id: 'member-2', role: 'MEMBER_ROLE_OWNER' };
  await caller.call('DirectoryService/PutMember', { member });
  return { studioId, memberId, apiKeyId, leadId: lead.id, leadSource, member };
}

type All = Awaited<ReturnType<typeof aStudioWithAll>>;

/** Returns everything that the cases change; the events show who is a member. */
async function readState(caller: GrpcCaller, { studioId, memberId, leadId }: All) {
  const read = (rpc: string, request: object = {}) => caller.call(rpc, { studioId, ...request });
  return Promise.all([
    read('LeadIntakeService/GetLead', { leadId, view: 'LEAD_VIEW_FULL' }),
    read('DirectoryService/GetStudio'),
    read('DirectoryService/ListLeadSources'),
    read('ApiKeyService/ListApiKeys', { memberId }),
    read('AuditService/ListAuditEvents'),
  ]);
}

/** A case for each method that needs a request_id. */
const CASES: Readonly<Record<string, (all: All) => Case>> = {
  ChangeLeadStage: ({ studioId, leadId }) => ({
    request: { studioId, leadId, stage: 'LEAD_STAGE_CONTACTED' },
    rival: ['ChangeLeadStage', { studioId, leadId, stage: 'LEAD_STAGE_WON' }],
  }),
  UpdateLead: ({ studioId, leadId }) => ({
    request: { studioId, lead: { id: leadId, note: 'one' } },
    rival: ['UpdateLead', { studioId, lead: { id: leadId, note: 'one, and two' } }],
  }),
  PutStudio: ({ studioId: id }) => ({
    before: ['PutStudio', { studio: { id, status: 'STUDIO_STATUS_SUSPENDED' } }],
    request: { studio: { id, status: 'STUDIO_STATUS_ACTIVE' } },
    rival: ['PutStudio', { studio: { id, status: 'STUDIO_STATUS_SUSPENDED' } }],
  }),
  PutApiKeyQuota: ({ studioId, apiKeyId }) => ({
    request: { studioId, apiKeyId, quotaLimit: 5 },
    rival: ['PutApiKeyQuota', { studioId, apiKeyId, quotaLimit: 7 }],
  }),
  PutMember: ({ studioId, member }) => ({
    before: ['RemoveMember', { studioId, memberId: member.id }],
    request: { member },
    rival: ['RemoveMember', { studioId, memberId: member.id }],
  }),
  RemoveMember: ({ studioId, member }) => ({
    request: { studioId, memberId: member.id },
    rival: ['PutMember', { member }],
  }),
  PutLeadSource: ({ studioId, leadSource }) => ({
    before: ['RemoveLeadSource', { studioId, leadSourceId: leadSource.id }],
    request: { leadSource },
    rival: ['RemoveLeadSource', { studioId, leadSourceId: leadSource.id }],
  }),
  RemoveLeadSource: ({ studioId, leadSource }) => ({
    request: { studioId, leadSourceId: leadSource.id },
    rival: ['PutLeadSource', { leadSource }],
  }),
};

const describeRpc = (method: string) => {
  const { parent } = METHODS.find(({ name }) => name === method) as DescMethod;
  return `${parent.name}/${method}`;
};

// @proves crashes-19
describe('a request', () => {
  let cores: readonly TestCore[] = [];
  let callers: readonly GrpcCaller[] = [];
  // Two cores on one database.
  beforeAll(async () => {
    const first = await startTestCore();
    cores = [first, await startTestCore({ DATABASE_URL: `sqlite:${first.path}` })];
    callers = cores.map(({ port }) => grpcCaller(`127.0.0.1:${port}`));
  });
  afterAll(async () => {
    for (const caller of callers) caller.close();
    for (const core of cores.toReversed()) await core.stop();
  });
  const both = () => callers as readonly [GrpcCaller, GrpcCaller];

  test.each(named('by request_id'))('a retry of %s after a lost response undoes nothing', async (method) => {
    const [one, other] = both();
    const all = await aStudioWithAll(one);
    const { before, request, rival } = (CASES[method] as (typeof CASES)[string])(all);
    const send = (caller: GrpcCaller, [name, message]: readonly [string, object]) =>
      caller.call(describeRpc(name), message);
    if (before) await send(one, before);
    const requestId = randomUUID();
    await send(one, [method, { ...request, requestId }]);
    await send(other, rival);
    const after = await readState(one, all);

    await send(other, [method, { ...request, requestId }]);
    await send(one, [method, { ...request, requestId }]);
    await send(one, [method, { ...request, requestId: requestId.toUpperCase() }]);

    expect(await readState(other, all)).toEqual(after);
  });

  test('a request id identifies a request of one method and one record only', async () => {
    const [one, other] = both();
    const requestId = randomUUID();
    const all = await aStudioWithAll(one);
    const { studioId, member } = all;
    await one.call('DirectoryService/PutMember', { member: { ...member, id: 'member-3' }, requestId });
    await other.call('DirectoryService/PutMember', { member: { ...member, role: 'MEMBER_ROLE_STAFF' }, requestId });
    await one.call('DirectoryService/RemoveMember', { studioId, memberId: member.id, requestId });
    const { events } = await other.call<{ events: { from: string; to: string }[] }>('AuditService/ListAuditEvents', {
      studioId,
    });
    expect(events.slice(0, 3)).toMatchObject([
      { from: 'member-2 staff' },
      { from: 'member-2 owner', to: 'member-2 staff' },
      { to: 'member-3 owner' },
    ]);
  });

  // @proves leads-33
  test('a retried move is not refused as stale, but another one is', async () => {
    const [one, other] = both();
    const { studioId, leadId } = await aStudioWithAll(one);
    type WithLead = { lead: { updateTime: { seconds: string; nanos: number } } };
    const { lead } = await one.call<WithLead>('LeadIntakeService/GetLead', { studioId, leadId });
    const move = (change: object) =>
      other.call<WithLead>('LeadIntakeService/ChangeLeadStage', {
        ...{ studioId, leadId, stage: 'LEAD_STAGE_WON', expectedUpdateTime: lead.updateTime },
        ...change,
      });
    const requestId = randomUUID();
    const first = await move({ requestId });

    await expect(move({ requestId })).resolves.toEqual(first);
    for (const stage of ['LEAD_STAGE_WON', 'LEAD_STAGE_NEW']) {
      expect(await findRefusal(move({ stage }))).toMatchObject({ code: 'ABORTED', reason: 'UPDATE_TIME_MISMATCH' });
    }
    for (const time of [{ ...lead.updateTime, nanos: 1 }, { seconds: -1 }, { nanos: 2_000_000_000 }]) {
      const refusal = await findRefusal(move({ expectedUpdateTime: time }));
      expect(refusal).toMatchObject({ reason: 'INVALID_REQUEST' });
    }
  });

  test('a retried correction is not refused as stale, or because its source was disabled since', async () => {
    const [one, other] = both();
    const { leadSource } = await aStudioWithAll(one);
    const { studioId } = leadSource;
    type WithLead = { lead: { id: string; updateTime: object; sourceId: string } };
    const created = await one.call<WithLead>('LeadIntakeService/CreateLead', aCreateLeadRequest(studioId));
    const { id, updateTime: expectedUpdateTime } = created.lead;
    const request = { studioId, lead: { id, sourceId: leadSource.id }, expectedUpdateTime, requestId: randomUUID() };
    const first = await one.call<WithLead>('LeadIntakeService/UpdateLead', request);
    await one.call('DirectoryService/PutLeadSource', { leadSource: { ...leadSource, enabled: false } });

    await expect(other.call('LeadIntakeService/UpdateLead', request)).resolves.toEqual(first);
    const another = { ...request, requestId: randomUUID() };
    expect(await findRefusal(other.call('LeadIntakeService/UpdateLead', another))).toMatchObject({
      reason: 'UPDATE_TIME_MISMATCH',
    });
  });
});
