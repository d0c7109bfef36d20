import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DescMethod } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiKeyService } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { AuditService } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import { DirectoryService } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { ExchangeService } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { LeadIntakeService } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import {
  aCreateLeadRequest,
  type GrpcCaller,
  grpcCaller,
  refusalOf,
  startTestCore,
  type TestCore,
} from '../support/grpc.ts';
import { createKey, putStudio } from '../support/grpc-studios.ts';

/**
 * What a repetition of each method may undo of what others have written since its first call. `nothing`: clients repeat it
 * automatically. `by request_id`: nothing, with that. `something`: only the caller knows whether to repeat it.
 */
const REPETITIONS: Readonly<Record<string, 'nothing' | 'by request_id' | 'something' | 'a stream'>> = {
  CreateLead: 'nothing',
  GetLead: 'nothing',
  ListLeads: 'nothing',
  ExportLeads: 'a stream',
  FindLeads: 'nothing',
  ChangeLeadStage: 'by request_id',
  UpdateLead: 'by request_id',
  ImportLeads: 'nothing',
  EraseLead: 'nothing',
  EraseContact: 'something',
  PullLeadChanges: 'nothing',
  WatchLeadChanges: 'a stream',
  AcknowledgeLeadChanges: 'nothing',
  ResendLeads: 'something',
  Exchange: 'a stream',
  CreateApiKey: 'something',
  ListApiKeys: 'nothing',
  ReplaceApiKey: 'something',
  RevokeApiKey: 'nothing',
  AuthenticateApiKey: 'nothing',
  PutStudio: 'by request_id',
  GetStudio: 'nothing',
  ListStudios: 'nothing',
  PutApiKeyQuota: 'by request_id',
  PutMember: 'by request_id',
  RemoveMember: 'by request_id',
  PutLeadSource: 'by request_id',
  RemoveLeadSource: 'by request_id',
  ListLeadSources: 'nothing',
  ListAuditEvents: 'nothing',
};

const METHODS: readonly DescMethod[] = [
  ...LeadIntakeService.methods,
  ...ExchangeService.methods,
  ...ApiKeyService.methods,
  ...DirectoryService.methods,
  ...AuditService.methods,
];

const named = (kind: (typeof REPETITIONS)[string]) =>
  METHODS.flatMap(({ name }) => (REPETITIONS[name] === kind ? [name] : [])).sort();

// @proves crashes-20
describe('repetitions', () => {
  test('are classified for each method', () => {
    expect(Object.keys(REPETITIONS).sort()).toEqual(METHODS.map(({ name }) => name).sort());
    expect(METHODS.flatMap(({ name, methodKind }) => (methodKind === 'unary' ? [] : [name])).sort()).toEqual(
      named('a stream'),
    );
  });

  test('have a request_id where, and only where, they need one', () => {
    const having = METHODS.flatMap(({ name, methodKind, input }) =>
      methodKind === 'unary' && input.field.requestId ? [name] : [],
    );
    expect(having.sort()).toEqual(named('by request_id'));
  });

  test('are automatic where, and only where, they can undo nothing', () => {
    const { methodConfig } = JSON.parse(
      readFileSync(join(import.meta.dirname, '../../proto/service-config.json'), 'utf8'),
    ) as { methodConfig: { name: { method: string }[] }[] };
    const automatic = methodConfig.flatMap(({ name }) => name.map(({ method }) => method));
    expect(automatic.sort()).toEqual(named('nothing'));
  });
});

/** A call, and what somebody else changes after it, which a repetition must not undo. */
interface Case {
  readonly service: 'LeadIntakeService' | 'DirectoryService' | 'ApiKeyService';
  /** Returns the request, and the rival's call. */
  prepare(caller: GrpcCaller): Promise<Prepared>;
}

interface Prepared {
  readonly request: object;
  rival(caller: GrpcCaller): Promise<unknown>;
  /** What both of them change. */
  state(caller: GrpcCaller): Promise<unknown>;
}

async function aLead(caller: GrpcCaller) {
  const studioId = await putStudio(caller);
  const creation = aCreateLeadRequest(studioId);
  const { lead } = await caller.call<{ lead: { id: string } }>('LeadIntakeService/CreateLead', creation);
  const ofLead = { studioId, leadId: lead.id };
  const read = async (by: GrpcCaller) => {
    const request = { ...ofLead, view: 'LEAD_VIEW_FULL' };
    const found = await by
      .call<{ lead: Record<string, unknown> }>('LeadIntakeService/GetLead', request)
      .catch(() => null);
    return found && { stage: found.lead.stage, note: found.lead.note, name: found.lead.displayName };
  };
  const move = (by: GrpcCaller, stage: string) => by.call('LeadIntakeService/ChangeLeadStage', { ...ofLead, stage });
  return { studioId, creation, ofLead, read, move };
}

async function aMember(caller: GrpcCaller) {
  const member = { studioId: await putStudio(caller), id: 'member-1', role: 'MEMBER_ROLE_OWNER' };
  const ofMember = { studioId: member.studioId, memberId: member.id };
  const put = (by: GrpcCaller) => by.call('DirectoryService/PutMember', { member });
  const remove = (by: GrpcCaller) => by.call('DirectoryService/RemoveMember', ofMember);
  // Only members may list keys.
  const isMember = (by: GrpcCaller) =>
    by.call('ApiKeyService/ListApiKeys', ofMember).then(
      () => true,
      () => false,
    );
  return { member, ofMember, put, remove, isMember };
}

async function aSource(caller: GrpcCaller) {
  const leadSource = { studioId: await putStudio(caller), id: randomUUID(), name: 'Form', enabled: true };
  const { studioId } = leadSource;
  const ofSource = { studioId, leadSourceId: leadSource.id };
  const put = (by: GrpcCaller) => by.call('DirectoryService/PutLeadSource', { leadSource });
  const remove = (by: GrpcCaller) => by.call('DirectoryService/RemoveLeadSource', ofSource);
  const sources = (by: GrpcCaller) => by.call('DirectoryService/ListLeadSources', { studioId });
  return { leadSource, ofSource, put, remove, sources };
}

/** Each method that needs a request_id. */
const CASES: Readonly<Record<string, Case>> = {
  ChangeLeadStage: {
    service: 'LeadIntakeService',
    async prepare(caller) {
      const { ofLead, move, read } = await aLead(caller);
      const request = { ...ofLead, stage: 'LEAD_STAGE_CONTACTED' };
      return { request, rival: (by) => move(by, 'LEAD_STAGE_WON'), state: read };
    },
  },
  UpdateLead: {
    service: 'LeadIntakeService',
    async prepare(caller) {
      const { studioId, ofLead, read } = await aLead(caller);
      const correction = (note: string) => ({ studioId, lead: { id: ofLead.leadId, note } });
      const rival = (by: GrpcCaller) => by.call('LeadIntakeService/UpdateLead', correction('one, and two'));
      return { request: correction('one'), rival, state: read };
    },
  },
  PutStudio: {
    service: 'DirectoryService',
    async prepare(caller) {
      const id = await putStudio(caller);
      const put = (status: string) => ({ studio: { id, status: `STUDIO_STATUS_${status}` } });
      await caller.call('DirectoryService/PutStudio', put('SUSPENDED'));
      const rival = (by: GrpcCaller) => by.call('DirectoryService/PutStudio', put('SUSPENDED'));
      return { request: put('ACTIVE'), rival, state: (by) => by.call('DirectoryService/GetStudio', { studioId: id }) };
    },
  },
  PutApiKeyQuota: {
    service: 'DirectoryService',
    async prepare(caller) {
      const { owner } = await createKey(caller);
      const put = (quotaLimit: number) => ({ ...owner, memberId: undefined, quotaLimit });
      const rival = (by: GrpcCaller) => by.call('DirectoryService/PutApiKeyQuota', put(7));
      return { request: put(5), rival, state: (by) => by.call('ApiKeyService/ListApiKeys', owner) };
    },
  },
  PutMember: {
    service: 'DirectoryService',
    async prepare(caller) {
      const { member, remove, isMember } = await aMember(caller);
      return { request: { member }, rival: remove, state: isMember };
    },
  },
  RemoveMember: {
    service: 'DirectoryService',
    async prepare(caller) {
      const { ofMember, put, isMember } = await aMember(caller);
      await put(caller);
      return { request: ofMember, rival: put, state: isMember };
    },
  },
  PutLeadSource: {
    service: 'DirectoryService',
    async prepare(caller) {
      const { leadSource, remove, sources } = await aSource(caller);
      return { request: { leadSource }, rival: remove, state: sources };
    },
  },
  RemoveLeadSource: {
    service: 'DirectoryService',
    async prepare(caller) {
      const { ofSource, put, sources } = await aSource(caller);
      await put(caller);
      return { request: ofSource, rival: put, state: sources };
    },
  },
};

// @proves crashes-20
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

  test.each(named('by request_id'))(
    '%s, whose response is lost, undoes nothing when it is repeated',
    async (method) => {
      const [one, other] = both();
      const { service, prepare } = CASES[method] as Case;
      const { request, rival, state } = await prepare(one);
      const requestId = randomUUID();
      const call = (caller: GrpcCaller) => caller.call(`${service}/${method}`, { ...request, requestId });
      await call(one);
      await rival(other);
      const after = await state(one);

      await call(other);
      await call(one);
      await one.call(`${service}/${method}`, { ...request, requestId: requestId.toUpperCase() });

      expect(await state(other)).toEqual(after);
    },
  );

  test('an id names a request of one method and one record, and no other', async () => {
    const [one, other] = both();
    const requestId = randomUUID();
    const { member, isMember } = await aMember(one);
    await one.call('DirectoryService/PutMember', { member: { ...member, id: 'member-2' }, requestId });
    await other.call('DirectoryService/PutMember', { member, requestId });
    expect(await isMember(one)).toBe(true);
    await one.call('DirectoryService/RemoveMember', { studioId: member.studioId, memberId: member.id, requestId });
    expect(await isMember(other)).toBe(false);
  });

  test('a repeated correction is not refused because of the time that it expected, or of a source disabled since', async () => {
    const [one, other] = both();
    const { leadSource, put } = await aSource(one);
    await put(one);
    const { studioId } = leadSource;
    type WithLead = { lead: { id: string; updateTime: object; sourceId: string } };
    const created = await one.call<WithLead>('LeadIntakeService/CreateLead', aCreateLeadRequest(studioId));
    const { id, updateTime: expectedUpdateTime } = created.lead;
    const request = { studioId, lead: { id, sourceId: leadSource.id }, expectedUpdateTime, requestId: randomUUID() };
    const first = await one.call<WithLead>('LeadIntakeService/UpdateLead', request);
    await one.call('DirectoryService/PutLeadSource', { leadSource: { ...leadSource, enabled: false } });

    await expect(other.call('LeadIntakeService/UpdateLead', request)).resolves.toEqual(first);
    const another = { ...request, requestId: randomUUID() };
    expect(await refusalOf(other.call('LeadIntakeService/UpdateLead', another))).toMatchObject({
      reason: 'UPDATE_TIME_MISMATCH',
    });
  });
});
