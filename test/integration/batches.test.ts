import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { newId } from '../../src/domain/new-id.ts';
import { callInBatches, openBatches } from '../support/batch-calls.ts';
import { times } from '../support/builders.ts';
import { aCreateLeadRequest, CORE_TOKEN, grpcCaller, refusalOf } from '../support/grpc.ts';
import {
  countLeads,
  createKey,
  putSource,
  putStudio,
  removeIssuer,
  revokeKey,
  suspendStudio,
} from '../support/grpc-studios.ts';
import { allOutcomes, type Outcome, outcomeOf } from '../support/item-calls.ts';
import { addressOf, run, temporaryFolder } from '../support/processes.ts';
import { aSharedCore } from './shared-core.ts';
import type { WireLead } from './wire-lead.ts';

interface Created {
  readonly lead: WireLead;
  readonly replayed: boolean;
}

const { core, caller } = aSharedCore();
let studioId: string;

beforeEach(async () => {
  studioId = await aStudio();
});

const aStudio = () => putStudio(caller);
const aSource = (enabled = true, of = studioId) => putSource(caller, of, enabled);
const aKey = () => createKey(caller);

const capture = (overrides?: object) => aCreateLeadRequest(studioId, overrides);

const create = (request: object) => caller.call<Created>('LeadIntakeService/CreateLead', request);

/** The batch methods, each with a valid request. */
const BATCH_METHODS: Readonly<Record<string, () => object>> = {
  'LeadIntakeService/BatchCreateLeads': () => capture(),
  'LeadIntakeService/BatchGetLeads': () => ({ studioId, leadId: newId() }),
  'LeadIntakeService/BatchListLeads': () => ({ studioId }),
  'ApiKeyService/BatchAuthenticateApiKeys': () => ({ secretSha256: randomBytes(32) }),
};

const BATCH_CREATE = 'LeadIntakeService/BatchCreateLeads';

describe('each request gets one result, that of a single call', () => {
  test('BatchCreateLeads', async () => {
    const first = capture({ note: 'first' });
    const { lead } = await create(first);
    const created = capture({ sourceId: await aSource(), note: 'new' });
    const requests = [
      created,
      first,
      { ...first, note: 'other' },
      capture({ contact: first.contact }),
      capture({ sourceId: await aSource(false) }),
      capture({ displayName: '', contact: { phone: '1' }, note: '' }),
      capture({ studioId: 'nowhere' }),
      {},
    ];

    const outcomes = await callInBatches<Created>(caller, BATCH_CREATE, [requests]);

    expect(outcomes).toMatchObject([
      { answer: { replayed: false, lead: { studioId, displayName: 'Ada Lovelace', note: 'new' } } },
      { answer: { replayed: true, lead } },
      { refusal: { code: 'ALREADY_EXISTS', reason: 'IDEMPOTENCY_CONFLICT' } },
      { refusal: { code: 'ALREADY_EXISTS', reason: 'LEAD_ALREADY_OPEN', metadata: { leadId: lead.id } } },
      { refusal: { code: 'FAILED_PRECONDITION', reason: 'SOURCE_INVALID' } },
      { refusal: { code: 'INVALID_ARGUMENT', fields: ['displayName', 'contact.phone', 'note'] } },
      { refusal: { code: 'NOT_FOUND', reason: 'STUDIO_NOT_FOUND' } },
      { refusal: { code: 'INVALID_ARGUMENT', fields: ['studioId', 'idempotencyKey', 'displayName', 'contact'] } },
    ]);
    const alone = await Promise.all(requests.map((request) => outcomeOf(create(request))));
    expect([{ answer: { ...outcomes[0]?.answer, replayed: true } }, ...outcomes.slice(1)]).toEqual(alone);
  });

  test('BatchGetLeads', async () => {
    const { lead } = await create(capture({ note: 'mine' }));
    const others = await create(capture({ studioId: await aStudio() }));

    const outcomes = await expectAsAlone('LeadIntakeService/GetLead', 'LeadIntakeService/BatchGetLeads', [
      { studioId, leadId: lead.id },
      { studioId, leadId: others.lead.id },
      { studioId, leadId: newId() },
      { studioId, leadId: lead.id.toUpperCase(), view: 'LEAD_VIEW_FULL' },
      { studioId, leadId: 'x' },
      { studioId: '!', leadId: '', view: 7 },
      { studioId: 'nowhere', leadId: lead.id },
    ]);

    const NOT_FOUND = { refusal: { code: 'NOT_FOUND', reason: 'LEAD_NOT_FOUND' } };
    expect(outcomes).toMatchObject([
      { answer: { lead: { ...lead, contact: null } } },
      NOT_FOUND,
      NOT_FOUND,
      { answer: { lead: { id: lead.id, contact: { email: expect.any(String) } } } },
      { refusal: { reason: 'INVALID_REQUEST', fields: ['leadId'] } },
      { refusal: { reason: 'INVALID_REQUEST', fields: ['studioId', 'leadId', 'view'] } },
      NOT_FOUND,
    ]);
  });

  test('BatchListLeads', async () => {
    for (const index of times(5, (each) => each)) await create(capture({ note: `${index}` }));
    const { nextPageToken } = await caller.call('LeadIntakeService/ListLeads', { studioId, pageSize: 2 });

    const outcomes = await expectAsAlone('LeadIntakeService/ListLeads', 'LeadIntakeService/BatchListLeads', [
      { studioId, pageSize: 2 },
      { studioId, pageSize: 2, pageToken: nextPageToken },
      { studioId, view: 'LEAD_VIEW_FULL' },
      { studioId: await aStudio(), pageToken: nextPageToken },
      { studioId: await aStudio() },
      { studioId, pageSize: -1 },
      { studioId, pageToken: '.' },
    ]);

    expect(outcomes).toMatchObject([
      { answer: { leads: [{ note: '4' }, { note: '3' }], nextPageToken } },
      { answer: { leads: [{ note: '2' }, { note: '1' }] } },
      { answer: { leads: times(5, () => ({ contact: { email: expect.any(String) } })), nextPageToken: '' } },
      { refusal: { reason: 'INVALID_REQUEST', fields: ['pageToken'] } },
      { answer: { leads: [], nextPageToken: '' } },
      { refusal: { reason: 'INVALID_REQUEST', fields: ['pageSize'] } },
      { refusal: { reason: 'INVALID_REQUEST', fields: ['pageToken'] } },
    ]);
  });

  test('BatchAuthenticateApiKeys', async () => {
    const [good, revoked, suspended, orphaned] = [await aKey(), await aKey(), await aKey(), await aKey()];
    await revokeKey(caller, revoked);
    await suspendStudio(caller, suspended);
    await removeIssuer(caller, orphaned);

    const outcomes = await expectAsAlone('ApiKeyService/AuthenticateApiKey', 'ApiKeyService/BatchAuthenticateApiKeys', [
      { secretSha256: good.secretSha256 },
      { secretSha256: revoked.secretSha256 },
      { secretSha256: suspended.secretSha256 },
      { secretSha256: orphaned.secretSha256 },
      { secretSha256: randomBytes(32) },
      { secretSha256: randomBytes(31) },
      { secretSha256: good.secretSha256 },
    ]);

    const authenticated = {
      answer: {
        studioId: good.owner.studioId,
        apiKeyId: good.owner.apiKeyId,
        scopes: ['API_KEY_SCOPE_LEADS_CREATE', 'API_KEY_SCOPE_LEADS_READ'],
      },
    };
    expect(outcomes).toMatchObject([
      authenticated,
      { refusal: { code: 'UNAUTHENTICATED', reason: 'KEY_INVALID' } },
      { refusal: { code: 'PERMISSION_DENIED', reason: 'STUDIO_SUSPENDED' } },
      { refusal: { code: 'PERMISSION_DENIED', reason: 'ISSUER_FORBIDDEN' } },
      { refusal: { code: 'UNAUTHENTICATED', reason: 'KEY_INVALID' } },
      { refusal: { code: 'INVALID_ARGUMENT', fields: ['secretSha256'] } },
      authenticated,
    ]);
  });

  /** Expects a batch of reads to have the same results as single calls, in any order. */
  async function expectAsAlone(single: string, batch: string, requests: object[]): Promise<Outcome[]> {
    const alone = await Promise.all(requests.map((request) => outcomeOf(caller.call(single, request))));

    const inOne = await callInBatches(caller, batch, [requests]);
    const inMany = await callInBatches(
      caller,
      batch,
      requests.map((request) => [request]),
    );
    const reversed = await callInBatches(caller, batch, [[...requests].reverse()]);
    expect([inOne, inMany, reversed.reverse()]).toEqual([alone, alone, alone]);
    return inOne;
  }
});

describe('requests with a key', () => {
  /** A request of each batch method, for the studio of a key. */
  const REQUESTS: Readonly<Record<string, () => object>> = {
    'LeadIntakeService/BatchCreateLeads': () => capture({ studioId: '' }),
    'LeadIntakeService/BatchGetLeads': () => ({ leadId: newId() }),
    'LeadIntakeService/BatchListLeads': () => ({}),
  };

  /** Sends one request for each key in one message; returns the outcomes. */
  async function sendWithKeys<Answer>(rpc: string, requests: readonly object[], keys: readonly Buffer[]) {
    const call = openBatches<Answer>(caller, rpc);
    call.send(requests, [], keys);
    return allOutcomes(call, requests.length);
  }

  test('use the studio of their key, whatever the other requests', async () => {
    const [one, other] = [await aKey(), await aKey()];
    const keys = [one, other, one].map(({ secretSha256 }) => secretSha256);
    const contact = { email: `${newId()}@example.org` };

    const created = await sendWithKeys<Created>(
      BATCH_CREATE,
      times(3, () => capture({ studioId: '', contact })),
      keys,
    );
    expect(created).toMatchObject([
      { answer: { lead: { studioId: one.owner.studioId } } },
      { answer: { lead: { studioId: other.owner.studioId } } },
      { refusal: { reason: 'LEAD_ALREADY_OPEN', metadata: { leadId: created[0]?.answer?.lead.id } } },
    ]);

    const leadId = created[0]?.answer?.lead.id;
    expect(
      await sendWithKeys(
        'LeadIntakeService/BatchGetLeads',
        times(3, () => ({ leadId })),
        keys,
      ),
    ).toMatchObject([
      { answer: { lead: { id: leadId } } },
      { refusal: { reason: 'LEAD_NOT_FOUND' } },
      { answer: { lead: { id: leadId } } },
    ]);
    expect(
      await sendWithKeys(
        'LeadIntakeService/BatchListLeads',
        times(3, () => ({})),
        keys,
      ),
    ).toMatchObject([
      { answer: { leads: [{ id: leadId }] } },
      { answer: { leads: [{ id: created[1]?.answer?.lead.id }] } },
      { answer: { leads: [{ id: leadId }] } },
    ]);
  });

  test('may each name a source of their studio', async () => {
    const [one, other] = [await aKey(), await aKey()];
    const [mine, disabled, theirs] = [
      await aSource(true, one.owner.studioId),
      await aSource(false, one.owner.studioId),
      await aSource(true, other.owner.studioId),
    ];
    const creations: [sourceId: string | undefined, key: typeof one][] = [
      [mine, one],
      [disabled, one],
      [theirs, one],
      [theirs, other],
      [undefined, one],
      ['no-source', one],
    ];

    const created = await sendWithKeys<Created>(
      BATCH_CREATE,
      creations.map(([sourceId]) => capture({ studioId: '', sourceId })),
      creations.map(([, { secretSha256 }]) => secretSha256),
    );

    expect(created).toMatchObject([
      { answer: { lead: { sourceId: mine } } },
      { refusal: { reason: 'SOURCE_INVALID' } },
      { refusal: { reason: 'SOURCE_INVALID' } },
      { answer: { lead: { sourceId: theirs } } },
      { answer: { lead: { studioId: one.owner.studioId } } },
      { refusal: { code: 'INVALID_ARGUMENT', fields: ['sourceId'] } },
    ]);
  });

  test.each(Object.entries(REQUESTS))('are refused as their keys are: %s', async (rpc, request) => {
    const [revoked, suspended, orphaned] = [await aKey(), await aKey(), await aKey()];
    await revokeKey(caller, revoked);
    await suspendStudio(caller, suspended);
    await removeIssuer(caller, orphaned);
    const keys = [
      ...[revoked, suspended, orphaned].map(({ secretSha256 }) => secretSha256),
      ...[32, 31].map((length) => randomBytes(length)),
    ];

    const outcomes = await sendWithKeys(rpc, keys.map(request), keys);

    const alone = keys.map((secretSha256) =>
      outcomeOf(caller.call('ApiKeyService/AuthenticateApiKey', { secretSha256 })),
    );
    expect(outcomes).toEqual(await Promise.all(alone));
    expect(outcomes.map(({ refusal }) => refusal?.reason)).toEqual([
      'KEY_INVALID',
      'STUDIO_SUSPENDED',
      'ISSUER_FORBIDDEN',
      'KEY_INVALID',
      'INVALID_REQUEST',
    ]);
    for (const { owner } of [revoked, suspended, orphaned]) expect(countLeads(core.path, owner.studioId)).toBe(0);
  });

  test.each(Object.entries(REQUESTS))(
    'must not name a studio, not even that of their key: %s',
    async (rpc, request) => {
      const { owner, secretSha256 } = await aKey();

      const [outcome] = await sendWithKeys(rpc, [{ ...request(), studioId: owner.studioId }], [secretSha256]);

      expect(outcome?.refusal).toMatchObject({ reason: 'INVALID_REQUEST', fields: ['studioId'] });
      expect(countLeads(core.path, owner.studioId)).toBe(0);
    },
  );

  test.each(Object.entries(REQUESTS))('must all have a key, or none: %s', async (rpc, request) => {
    const { owner, secretSha256 } = await aKey();

    const refusal = await refusalOf(sendWithKeys(rpc, [request(), request()], [secretSha256]));

    expect(refusal).toMatchObject({ code: 'INVALID_ARGUMENT', fields: ['secretSha256s'] });
    expect(countLeads(core.path, owner.studioId)).toBe(0);
  });
});

describe.each(Object.entries(BATCH_METHODS))('a message of %s that is not valid', (rpc, request) => {
  test.each<[string, () => [requests: object[], requestIds?: string[]], string]>([
    ['has no requests', () => [[]], 'requests'],
    ['has a hundred and one requests', () => [times(101, request)], 'requests'],
    ['names fewer requests than it has', () => [times(2, request), ['one']], 'requestIds'],
    ['names more requests than it has', () => [[request()], ['one', 'two']], 'requestIds'],
  ])('because it %s fails the call, and earlier messages get their results', async (_, message, field) => {
    const call = openBatches(caller, rpc);
    call.send(times(100, request));
    call.send(...message());
    call.send([request()]);

    expect(await refusalOf(call.ended)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'INVALID_REQUEST',
      domain: 'leadintake',
      fields: [field],
    });
    expect([...call.outcomes.keys()].sort((a, b) => a - b)).toEqual(times(100, (index) => index));
    const { leads } = await caller.call<{ leads: unknown[] }>('LeadIntakeService/ListLeads', {
      studioId,
      pageSize: 100,
    });
    expect(leads).toHaveLength(rpc === BATCH_CREATE ? 100 : 0);
  });
});

test('a message fits a hundred of the largest leads, as do the pages that list them', async () => {
  const sourceId = await aSource();
  const requests = times(100, () =>
    capture({
      displayName: '🦉'.repeat(160),
      note: '🦉'.repeat(2000),
      contact: { email: `${newId()}${'🦉'.repeat(206)}@example.org` },
      sourceId,
    }),
  );
  const call = openBatches<Created>(caller, BATCH_CREATE);
  call.send(
    requests,
    times(100, () => 'x'.repeat(128)),
  );

  const created = await allOutcomes(call, 100);

  expect(created.filter(({ answer }) => answer?.replayed === false)).toHaveLength(100);
  const lists = times(20, () => ({ studioId, pageSize: 100, view: 'LEAD_VIEW_FULL' }));
  const pages = await callInBatches<{ leads: WireLead[] }>(caller, 'LeadIntakeService/BatchListLeads', [lists]);
  for (const { answer } of pages) expect(answer?.leads).toHaveLength(100);
});

test('the log has one line for each request, with the request id of the caller and without any content', async () => {
  const own = run('src/main.ts', {
    env: { DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}`, CORE_TOKEN },
  });
  const client = grpcCaller(new URL(await addressOf(own)).host);
  onTestFinished(() => client.close());
  const secretSha256 = randomBytes(32);
  const ofStudio = { studioId: await putStudio(client) };
  const marked = { ...ofStudio, displayName: 'Secret name', note: 'Secret note' };
  const first = capture({ ...marked, contact: { email: 'secret@example.org' } });

  for (const [rpc, requests, requestIds] of [
    [BATCH_CREATE, [first], ['create-0']],
    [
      BATCH_CREATE,
      [{ ...first, note: 'Secret other' }, capture({ ...marked, displayName: '' })],
      ['create-1', 'create-2'],
    ],
    [BATCH_CREATE, [capture(marked)], []],
    ['LeadIntakeService/BatchGetLeads', [{ ...ofStudio, leadId: newId() }], ['get-0']],
    ['LeadIntakeService/BatchListLeads', [ofStudio], ['list-0']],
    ['ApiKeyService/BatchAuthenticateApiKeys', [{ secretSha256 }], ['key-0']],
  ] as const) {
    const call = openBatches(client, rpc);
    call.send(requests, requestIds);
    await allOutcomes(call, requests.length);
  }
  await refusalOf(openBatches(client, BATCH_CREATE, { authorization: 'Bearer stolen' }).ended);
  own.child.kill('SIGTERM');
  expect(await own.ended()).toBe(0);

  const lines = own
    .output()
    .split('\n')
    .filter((line) => line.includes('"operation"') && !line.includes('"Put'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const byText = (a: unknown, b: unknown) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);
  expect(lines.map(({ operation, requestId, outcome }) => [requestId, operation, outcome]).sort(byText)).toEqual(
    [
      ['create-0', 'CreateLead', 'ok'],
      ['create-1', 'CreateLead', 'IDEMPOTENCY_CONFLICT'],
      ['create-2', 'CreateLead', 'INVALID_REQUEST'],
      [undefined, 'CreateLead', 'ok'],
      ['get-0', 'GetLead', 'LEAD_NOT_FOUND'],
      ['list-0', 'ListLeads', 'ok'],
      ['key-0', 'AuthenticateApiKey', 'KEY_INVALID'],
      [undefined, 'BatchCreateLeads', 'CALLER_UNAUTHENTICATED'],
    ].sort(byText),
  );
  for (const line of lines) expect(line.durationMs).toEqual(expect.any(Number));
  expect(own.output()).not.toMatch(/secret|@example|stolen/i);
  expect(own.output()).not.toContain(secretSha256.toString('hex'));
  expect(own.output()).not.toContain(secretSha256.toString('base64'));
});
