import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { DatabaseSync } from 'node:sqlite';
import { json } from 'node:stream/consumers';
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { LeadIntakeService, LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { newId } from '../../src/domain/new-id.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { onStream } from '../security/http2-wire.ts';
import { anApiKey, DAY_MS, HARD_TEXTS, plus, times } from '../support/builders.ts';
import {
  aCreateLeadRequest,
  CORE_TOKEN,
  findRefusal,
  type GrpcCaller,
  grpcCaller,
  startTestCore,
} from '../support/grpc.ts';
import { aSharedCore } from './shared-core.ts';
import { withToken } from './transports.ts';
import type { WireTime } from './wire-lead.ts';

const timestamp = (moment: Date): WireTime => ({
  seconds: Math.floor(moment.getTime() / 1000),
  nanos: (moment.getTime() % 1000) * 1_000_000,
});
const inDays = (days: number) => timestamp(plus(new Date(), days * DAY_MS));

const { core, caller } = aSharedCore();
let studioId: string;

// Calls the core that most tests share; each test has its own studio there.
const call: GrpcCaller['call'] = (rpc, request, options) => caller.call(rpc, request, options);
const leads = <Answer>(method: string, request: object) => call<Answer>(`LeadIntakeService/${method}`, request);
const keys = <Answer>(method: string, request: object) => call<Answer>(`ApiKeyService/${method}`, request);
const directory = <Answer>(method: string, request: object) => call<Answer>(`DirectoryService/${method}`, request);

const INVALID = { code: 'INVALID_ARGUMENT', reason: 'INVALID_REQUEST', domain: 'leadintake', metadata: {} };

/** The expected parts of a refusal. */
const refused = (code: string, reason: string, metadata: Record<string, string> = {}) => ({
  code,
  reason,
  domain: 'leadintake',
  metadata,
  message: expect.stringMatching(/./),
});
const STUDIO_NOT_FOUND = refused('NOT_FOUND', 'STUDIO_NOT_FOUND');
beforeEach(async () => {
  studioId = await aStudio();
});

async function aStudio(overrides: object = {}): Promise<string> {
  const id = `studio-${newId()}`;
  await directory('PutStudio', { studio: { id, status: 'STUDIO_STATUS_ACTIVE', ...overrides } });
  return id;
}

const capture = (overrides?: object) => aCreateLeadRequest(studioId, overrides);

test('a key is issued with its secret, and not replaced if it is revoked, expired or foreign', {
  tags: ['3.2.renewed', '3.2.revoked'],
}, async () => {
  const memberId = 'owner';
  const other = await aStudio();
  for (const of of [studioId, other]) {
    await directory('PutMember', { member: { studioId: of, id: memberId, role: 'MEMBER_ROLE_OWNER' } });
  }
  const expireTime = inDays(366 - 1 / 24);
  const scopes = ['API_KEY_SCOPE_LEADS_READ', 'API_KEY_SCOPE_LEADS_CREATE'];
  const order = { studioId, memberId, name: 'Website', scopes: [...scopes, ...scopes], expireTime };
  const { apiKey, secret } = await keys<{ apiKey: { id: string; scopes: string[] }; secret: string }>(
    'CreateApiKey',
    order,
  );

  expect(apiKey).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    ...{ studioId, memberId, name: 'Website', expireTime, revokeTime: null, lastUsedTime: null },
    scopes: expect.toSatisfy((each: string[]) => each.toSorted().join() === scopes.toSorted().join()),
    createTime: expect.objectContaining({ seconds: expect.any(Number) }),
    secretHint: secret.slice(-4),
  });
  const secretSha256 = createHash('sha256').update(secret).digest();
  const bearer = { studioId, apiKeyId: apiKey.id, scopes: apiKey.scopes };
  expect(await keys('AuthenticateApiKey', { secretSha256 })).toEqual(bearer);

  const then = plus(new Date(), -DAY_MS);
  const expired = anApiKey({ studioId, memberId, expiresAt: plus(then, 1000) });
  const store = openSqliteStore(core.path);
  expect(await store.createApiKey(expired, then)).toBe(true);
  await store.close();
  const replaced = (change: object) =>
    findRefusal(keys('ReplaceApiKey', { studioId, memberId, apiKeyId: apiKey.id, ...change }));
  expect(await replaced({ apiKeyId: newId() })).toMatchObject({ reason: 'KEY_NOT_FOUND' });
  expect(await replaced({ studioId: other })).toMatchObject({ reason: 'KEY_NOT_FOUND' });
  expect(await replaced({ apiKeyId: expired.id })).toMatchObject({ reason: 'KEY_EXPIRED' });
  await keys('RevokeApiKey', { studioId, memberId, apiKeyId: apiKey.id });
  expect(await replaced({ expireTime: inDays(1) })).toMatchObject({ reason: 'KEY_REVOKED' });
});

describe('the directory', () => {
  test('PutStudio keeps missing fields, and clears those that the mask names', async () => {
    await directory('PutStudio', { studio: { id: studioId, status: 'STUDIO_STATUS_SUSPENDED', regionCode: 'DE' } });
    const put = (studio: object, mask?: string[]) =>
      directory('PutStudio', { studio: { id: studioId, ...studio }, ...(mask && { updateMask: { paths: mask } }) });
    const of = { id: studioId, status: 'STUDIO_STATUS_SUSPENDED', keepEnquiries: true, isTest: false };
    const both = { ...of, regionCode: 'DE' };

    expect(await put({ status: 'STUDIO_STATUS_ACTIVE' })).toEqual({
      studio: { ...both, status: 'STUDIO_STATUS_ACTIVE' },
    });
    expect(await put({ status: 'STUDIO_STATUS_SUSPENDED' })).toEqual({ studio: both });
    expect(await put({ regionCode: 'DE' })).toEqual({ studio: both });
    expect(await put({})).toEqual({ studio: both });
    expect(await put({ status: 'STUDIO_STATUS_ACTIVE', regionCode: 'FR' }, ['region_code'])).toEqual({
      studio: { ...both, regionCode: 'FR' },
    });
    expect(await put({}, ['region_code'])).toEqual({ studio: of });
    expect(await put({ keepEnquiries: false })).toEqual({ studio: { ...of, keepEnquiries: false } });
    expect(await put({})).toEqual({ studio: { ...of, keepEnquiries: false } });
    expect(await put({}, ['keep_enquiries'])).toEqual({ studio: of });
    expect(await put({ quotaLimit: 5 })).toEqual({ studio: { ...of, quotaLimit: 5 } });
    expect(await put({}, ['quota_limit'])).toEqual({ studio: of });
    expect(await findRefusal(put({}, ['status']))).toMatchObject({ ...INVALID, fields: ['studio.status'] });
    expect(await findRefusal(put({}, ['members']))).toMatchObject({ ...INVALID, fields: ['updateMask'] });
  });

  describe('a studio above the limits of members and sources, with the longest names', () => {
    // An earlier release had no limit; no message may exceed the default limit of gRPC clients, 4 MB.
    const FIRST_PAGE = 1000;
    const there = times(7000, newId);
    let full: string;

    beforeAll(async () => {
      full = await aStudio();
      const database = new DatabaseSync(core.path, { timeout: 100_000 });
      const insert = database.prepare('INSERT INTO lead_sources (studio_id, id, name, enabled) VALUES (?, ?, ?, 1)');
      const insertMember = database.prepare("INSERT INTO members (studio_id, id, role) VALUES (?, ?, 'staff')");
      database.exec('BEGIN IMMEDIATE');
      for (const id of there) insert.run(full, id, '🦉'.repeat(160));
      for (const index of times(1000, (each) => each)) insertMember.run(full, `member-${index}`);
      database.exec('COMMIT');
      database.close();
    });

    interface Page {
      leadSources: { id: string }[];
      nextPageToken: string;
    }
    const page = (request: object) => directory<Page>('ListLeadSources', { studioId: full, ...request });
    const ids = ({ leadSources }: Page) => leadSources.map(({ id }) => id);

    test('a studio above its limits accepts no new members and sources, but changes of existing ones', async () => {
      const limit = refused('FAILED_PRECONDITION', 'DIRECTORY_LIMIT_REACHED');
      const leadSource = { studioId: full, id: newId(), name: 'Form', enabled: true };
      const member = { studioId: full, id: 'another', role: 'MEMBER_ROLE_STAFF' };

      expect(await findRefusal(directory('PutLeadSource', { leadSource }))).toEqual(limit);
      expect(await findRefusal(directory('PutMember', { member }))).toEqual(limit);
      await directory('PutMember', { member: { ...member, id: 'member-1' } });
      await directory('PutStudio', { studio: { id: full, status: 'STUDIO_STATUS_SUSPENDED' } });
    });

    // @proves exchange-5
    test('all sources of a studio above its limits are listed, page by page, with any page size', async () => {
      for (const pageSize of [0, 1, 999, 1000, 5000]) {
        const first = await page({ pageSize });
        expect(ids(first)).toEqual(there.slice(0, Math.min(pageSize || FIRST_PAGE, FIRST_PAGE)));
      }
      const all: string[] = [];
      let pageToken = '';
      do {
        const next = await page({ pageToken });
        all.push(...ids(next));
        pageToken = next.nextPageToken;
      } while (pageToken !== '');
      expect(all).toEqual(there);
    });
  });
});

test.each<[rpc: string, request: () => object]>([
  ['LeadIntakeService/CreateLead', capture],
  ['LeadIntakeService/ImportLeads', () => ({ leads: [capture()] })],
  ['ApiKeyService/CreateApiKey', () => ({ memberId: 'a', name: 'a', scopes: [1], expireTime: inDays(1) })],
  ['ApiKeyService/ListApiKeys', () => ({ memberId: 'a' })],
  ['ApiKeyService/ReplaceApiKey', () => ({ memberId: 'a', apiKeyId: newId() })],
  ['ApiKeyService/RevokeApiKey', () => ({ memberId: 'a', apiKeyId: newId() })],
  ['DirectoryService/EmptyStudio', () => ({})],
  ['DirectoryService/GetStudio', () => ({})],
  ['DirectoryService/EraseStudio', () => ({ confirmStudioId: 'nowhere' })],
  ['DirectoryService/PutMember', () => ({ member: { studioId: 'nowhere', id: 'a', role: 1 } })],
  ['DirectoryService/RemoveMember', () => ({ memberId: 'a' })],
  ['DirectoryService/PutLeadSource', () => ({ leadSource: { studioId: 'nowhere', id: newId(), name: 'x' } })],
  ['DirectoryService/ListLeadSources', () => ({})],
])('%s is refused for an unknown studio', async (rpc, request) => {
  expect(await findRefusal(call(rpc, { ...request(), studioId: 'nowhere' }))).toEqual(STUDIO_NOT_FOUND);
});

test('a core without a token on the loopback interface requires none', async () => {
  const open = await startTestCore({ CORE_TOKEN: undefined });
  const another = grpcCaller(`127.0.0.1:${open.port}`);
  onTestFinished(async () => {
    another.close();
    await open.stop();
  });
  const none = { leads: [], nextPageToken: '', skippedCount: 0 };
  expect(await another.call('LeadIntakeService/ListLeads', { studioId }, { authorization: undefined })).toEqual(none);
});

test('a deadline beyond the longest counts as the longest', async () => {
  const list = (ms: number) => call('LeadIntakeService/ListLeads', { studioId }, { deadline: Date.now() + ms });

  for (const ms of [60_000, 3_600_000, 10 ** 12]) expect(await list(ms)).toMatchObject({ leads: [] });
});

// @proves connect-11
test('an unknown RPC is unimplemented, in the protocol of its caller', async () => {
  const session = connect(core.url);
  onTestFinished(() => session.destroy());
  const answerTo = (type: string) => {
    const head = { ':method': 'POST', ':path': '/leadintake.v1.LeadIntakeService/DropLeads', te: 'trailers' };
    return onStream(session, { ...head, 'content-type': type, authorization: `Bearer ${CORE_TOKEN}` }, Buffer.alloc(5));
  };
  expect(await answerTo('application/grpc')).toMatchObject({ status: 200, grpcStatus: 12 });
  const web = await answerTo('application/grpc-web+json');
  expect([web.status, web.text]).toEqual([200, expect.stringMatching(/grpc-web\+json.*grpc-status: 12/s)]);
});

// @proves node-17
test('a core stops while its callers keep their idle connections', async () => {
  const other = await startTestCore();
  const idle = grpcCaller(`127.0.0.1:${other.port}`);
  onTestFinished(() => idle.close());
  await idle.call('DirectoryService/ListStudios');

  await other.stop();

  expect(await findRefusal(idle.call('DirectoryService/ListStudios'))).toMatchObject({ code: 'UNAVAILABLE' });
});

describe('one port, every protocol', () => {
  const options = () => ({ baseUrl: core.url, httpVersion: '2' as const, interceptors: [withToken] });

  test.each<[string, () => Transport]>([
    ['Connect with JSON', () => createConnectTransport({ ...options(), useBinaryFormat: false })],
    ['Connect with binary messages', () => createConnectTransport({ ...options(), useBinaryFormat: true })],
    ['Connect with GET', () => createConnectTransport({ ...options(), useHttpGet: true })],
    ['gRPC-Web', () => createGrpcWebTransport(options())],
    ['gRPC', () => createGrpcTransport(options())],
  ])('one port serves %s', async (_, transport) => {
    const client = createClient(LeadIntakeService, transport());
    const request = { ...capture(), contact: { value: { case: 'email' as const, value: `${newId()}@example.org` } } };

    const { lead } = await client.createLead({ ...request, note: HARD_TEXTS.emoji as string });
    const { lead: read } = await client.getLead({ studioId, leadId: lead?.id as string });
    const error = await client
      .createLead({ ...request, idempotencyKey: newId() })
      .then(() => new Error('not refused'), ConnectError.from);

    expect(read).toEqual(lead);
    expect(read).toMatchObject({ studioId, note: HARD_TEXTS.emoji, stage: LeadStage.NEW });
    expect(error).toMatchObject({ code: Code.AlreadyExists });
    expect((error as ConnectError).findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: 'LEAD_ALREADY_OPEN', domain: 'leadintake', metadata: { leadId: lead?.id } },
    ]);
  });

  test('responses to GET may not be cached', async () => {
    const session = connect(core.url);
    onTestFinished(() => session.destroy());
    const query = `connect=v1&encoding=json&message=${encodeURIComponent(JSON.stringify({ studioId }))}`;
    for (const [token, expected] of [
      [CORE_TOKEN, 200],
      ['other', 401],
    ] as const) {
      const path = `/leadintake.v1.LeadIntakeService/ListLeads?${query}`;
      const stream = session.request({ ':path': path, authorization: `Bearer ${token}` });
      const [{ ':status': status, 'cache-control': caching }] = await once(stream, 'response');
      expect([status, caching]).toEqual([expected, 'no-store']);
    }
  });

  const inJson = (method: string, request: object) => {
    const session = connect(core.url);
    onTestFinished(() => session.destroy());
    const stream = session.request({
      ':method': 'POST',
      ':path': `/leadintake.v1.LeadIntakeService/${method}`,
      'content-type': 'application/json',
      authorization: `Bearer ${CORE_TOKEN}`,
    });
    stream.end(JSON.stringify(request));
    return json(stream);
  };

  // @proves connect-7
  test('an unpaired surrogate, which only JSON can carry, is refused', async () => {
    expect(await inJson('CreateLead', capture({ displayName: '\ud83e' }))).toMatchObject({ code: 'invalid_argument' });
    expect(await leads('ListLeads', { studioId })).toMatchObject({ leads: [] });
  });

  test('an unknown stage, which only JSON can carry, does not match every lead', async () => {
    await leads('CreateLead', capture());
    const listed = (stage: string) => inJson('ListLeads', { studioId, filter: { stages: [stage] }, more: 'ignored' });
    expect(await listed('LEAD_STAGE_NEW')).toMatchObject({ leads: [{ studioId }] });
    const message = expect.stringContaining('stages is not');
    expect(await listed('LEAD_STAGE_NWE')).toMatchObject({ code: 'invalid_argument', message });
  });
});
