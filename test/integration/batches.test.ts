import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRegistry } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { createClient, type Interceptor, type Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { BadRequestSchema, ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { LeadIntakeService } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { newId } from '../../src/domain/new-id.ts';
import { askInBatches, openBatches } from '../support/batch-calls.ts';
import { DAY_MS, plus, times } from '../support/builders.ts';
import {
  aCreateLeadRequest,
  CORE_TOKEN,
  type GrpcCaller,
  grpcCaller,
  refusalOf,
  startTestCore,
  type TestCore,
} from '../support/grpc.ts';
import { type Outcome, outcomeOf } from '../support/item-calls.ts';
import { addressOf, run, temporaryFolder } from '../support/processes.ts';
import { startProxy } from '../support/tcp-proxy.ts';

/** How many requests of a call the core may have begun without having sent their results. */
const MOST_OPEN = 1000;

interface WireLead {
  readonly id: string;
  readonly displayName: string;
  readonly note?: string;
}

interface Created {
  readonly lead: WireLead;
  readonly replayed: boolean;
}

let core: TestCore;
let caller: GrpcCaller;
let studioId: string;

beforeAll(async () => {
  core = await startTestCore();
  caller = grpcCaller(`127.0.0.1:${core.port}`);
});
afterAll(async () => {
  caller.close();
  await core.stop();
});
beforeEach(async () => {
  studioId = await aStudio();
});

async function aStudio({ status = 'STUDIO_STATUS_ACTIVE', on = caller } = {}): Promise<string> {
  const id = `studio-${newId()}`;
  await on.call('DirectoryService/PutStudio', { studio: { id, status } });
  return id;
}

async function aSource(enabled = true, of = studioId): Promise<string> {
  const id = newId();
  await caller.call('DirectoryService/PutLeadSource', { leadSource: { studioId: of, id, name: 'Form', enabled } });
  return id;
}

/** A studio with a key, and what its owner is called where keys are kept. */
async function aKey() {
  const owner = { studioId: await aStudio(), memberId: 'owner-1' };
  await caller.call('DirectoryService/PutMember', {
    member: { studioId: owner.studioId, id: owner.memberId, role: 'MEMBER_ROLE_OWNER' },
  });
  const { apiKey, secret } = await caller.call<{ apiKey: { id: string }; secret: string }>(
    'ApiKeyService/CreateApiKey',
    {
      ...owner,
      name: 'Website',
      scopes: ['API_KEY_SCOPE_LEADS_READ', 'API_KEY_SCOPE_LEADS_CREATE'],
      expireTime: { seconds: Math.floor(plus(new Date(), DAY_MS).getTime() / 1000) },
    },
  );
  return { owner: { ...owner, apiKeyId: apiKey.id }, secretSha256: createHash('sha256').update(secret).digest() };
}

const capture = (overrides?: object) => aCreateLeadRequest(studioId, overrides);

const create = (request: object, on = caller) => on.call<Created>('LeadIntakeService/CreateLead', request);

/** So long that few leads with it are under way in the network, and that those that are kept can be seen. */
const LONG_NOTE = '長'.repeat(2000);

/** How many leads there are of the studios with an id like that, by a look of its own into the database. */
function countLeads(path: string, of = studioId): number {
  const database = new DatabaseSync(path, { readOnly: true });
  const row = database.prepare('SELECT count(*) AS count FROM leads WHERE studio_id LIKE ?').get(of);
  database.close();
  return row?.count as number;
}

/** The batch methods, and a request that each can answer. */
const BATCH_METHODS: Readonly<Record<string, () => object>> = {
  'LeadIntakeService/BatchCreateLeads': () => capture(),
  'LeadIntakeService/BatchGetLeads': () => ({ studioId, leadId: newId() }),
  'LeadIntakeService/BatchListLeads': () => ({ studioId }),
  'ApiKeyService/BatchAuthenticateApiKeys': () => ({ secretSha256: randomBytes(32) }),
};

const BATCH_CREATE = 'LeadIntakeService/BatchCreateLeads';

describe('each request is answered once, as it would be alone', () => {
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

    const outcomes = await askInBatches<Created>(caller, BATCH_CREATE, [requests]);

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

    const outcomes = await expectAsAlone('LeadIntakeService', 'GetLead', [
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

    const outcomes = await expectAsAlone('LeadIntakeService', 'ListLeads', [
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
    await caller.call('ApiKeyService/RevokeApiKey', revoked.owner);
    await caller.call('DirectoryService/PutStudio', {
      studio: { id: suspended.owner.studioId, status: 'STUDIO_STATUS_SUSPENDED' },
    });
    await caller.call('DirectoryService/RemoveMember', orphaned.owner);

    const outcomes = await expectAsAlone('ApiKeyService', 'AuthenticateApiKey', [
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

  /** Expects of a method that only reads that a batch answers what it answers; whichever the order. */
  async function expectAsAlone(service: string, method: string, requests: object[]): Promise<Outcome[]> {
    const batch = {
      GetLead: 'BatchGetLeads',
      ListLeads: 'BatchListLeads',
      AuthenticateApiKey: 'BatchAuthenticateApiKeys',
    };
    const rpc = `${service}/${batch[method as keyof typeof batch]}`;
    const alone = await Promise.all(requests.map((request) => outcomeOf(caller.call(`${service}/${method}`, request))));

    const outcomes = await askInBatches(caller, rpc, [requests]);
    expect(outcomes).toEqual(alone);
    expect(
      await askInBatches(
        caller,
        rpc,
        requests.map((request) => [request]),
      ),
    ).toEqual(alone);
    expect(await askInBatches(caller, rpc, [[...requests].reverse()])).toEqual([...alone].reverse());
    return outcomes;
  }
});

describe('requests that came with a key', () => {
  /** What each batch method is asked for a key's studio. */
  const ASKED: Readonly<Record<string, () => object>> = {
    'LeadIntakeService/BatchCreateLeads': () => capture({ studioId: '' }),
    'LeadIntakeService/BatchGetLeads': () => ({ leadId: newId() }),
    'LeadIntakeService/BatchListLeads': () => ({}),
  };

  /** Sends one request for each key in one message, and gives what became of them. */
  async function askWith<Answer>(rpc: string, requests: readonly object[], keys: readonly Buffer[]) {
    const call = openBatches<Answer>(caller, rpc);
    call.send(requests, [], keys);
    call.end();
    await call.ended;
    return requests.map((_, index) => call.outcomes.get(index));
  }

  test('are about the studio of the key, whoever is beside them', async () => {
    const [one, other] = [await aKey(), await aKey()];
    const keys = [one, other, one].map(({ secretSha256 }) => secretSha256);
    const contact = { email: `${newId()}@example.org` };

    const created = await askWith<Created>(
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
      await askWith(
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
      await askWith(
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

  test('may name a source of that studio, each its own', async () => {
    const [one, other] = [await aKey(), await aKey()];
    const [mine, disabled, theirs] = [
      await aSource(true, one.owner.studioId),
      await aSource(false, one.owner.studioId),
      await aSource(true, other.owner.studioId),
    ];
    const asked: [sourceId: string | undefined, key: typeof one][] = [
      [mine, one],
      [disabled, one],
      [theirs, one],
      [theirs, other],
      [mine.toUpperCase(), one],
      [undefined, one],
      [newId(), one],
      ['no-source', one],
    ];

    const created = await askWith<Created>(
      BATCH_CREATE,
      asked.map(([sourceId]) => capture({ studioId: '', sourceId })),
      asked.map(([, { secretSha256 }]) => secretSha256),
    );

    expect(created).toMatchObject([
      { answer: { lead: { sourceId: mine } } },
      { refusal: { reason: 'SOURCE_INVALID' } },
      { refusal: { reason: 'SOURCE_INVALID' } },
      { answer: { lead: { sourceId: theirs } } },
      { answer: { lead: { sourceId: mine } } },
      { answer: { lead: { studioId: one.owner.studioId } } },
      { refusal: { reason: 'SOURCE_INVALID' } },
      { refusal: { code: 'INVALID_ARGUMENT', fields: ['sourceId'] } },
    ]);
  });

  test('are not taken for a neighbour’s by a hash that goes on with the source which that one names', async () => {
    const { owner, secretSha256 } = await aKey();
    const sourceId = await aSource(true, owner.studioId);
    const tooLong = Buffer.concat([secretSha256, Buffer.from(sourceId)]);

    expect(
      await askWith(
        BATCH_CREATE,
        [capture({ studioId: '' }), capture({ studioId: '', sourceId })],
        [tooLong, secretSha256],
      ),
    ).toMatchObject([
      { refusal: { code: 'INVALID_ARGUMENT', fields: ['secretSha256'] } },
      { answer: { lead: { sourceId } } },
    ]);
  });

  test.each(Object.entries(ASKED))('are refused as their keys are: %s', async (rpc, asked) => {
    const [revoked, suspended, orphaned] = [await aKey(), await aKey(), await aKey()];
    await caller.call('ApiKeyService/RevokeApiKey', revoked.owner);
    await caller.call('DirectoryService/PutStudio', {
      studio: { id: suspended.owner.studioId, status: 'STUDIO_STATUS_SUSPENDED' },
    });
    await caller.call('DirectoryService/RemoveMember', orphaned.owner);
    const keys = [
      ...[revoked, suspended, orphaned].map(({ secretSha256 }) => secretSha256),
      ...[32, 31].map((length) => randomBytes(length)),
    ];

    const outcomes = await askWith(rpc, keys.map(asked), keys);

    const alone = keys.map((secretSha256) =>
      outcomeOf(caller.call('ApiKeyService/AuthenticateApiKey', { secretSha256 })),
    );
    expect(outcomes).toEqual(await Promise.all(alone));
    expect(outcomes.map((outcome) => outcome?.refusal?.reason)).toEqual([
      'KEY_INVALID',
      'STUDIO_SUSPENDED',
      'ISSUER_FORBIDDEN',
      'KEY_INVALID',
      'INVALID_REQUEST',
    ]);
    for (const { owner } of [revoked, suspended, orphaned]) expect(countLeads(core.path, owner.studioId)).toBe(0);
  });

  test.each(Object.entries(ASKED))('have their keys looked at anew for each message: %s', async (rpc, asked) => {
    const { owner, secretSha256 } = await aKey();
    const call = openBatches(caller, rpc);
    call.send([asked()], [], [secretSha256]);
    expect((await call.outcome(0)).refusal?.reason).not.toBe('KEY_INVALID');

    await caller.call('ApiKeyService/RevokeApiKey', owner);

    call.send([asked(), asked()], [], [secretSha256, secretSha256]);
    for (const index of [1, 2]) expect((await call.outcome(index)).refusal?.reason).toBe('KEY_INVALID');
    call.end();
    await call.ended;
  });

  test.each(Object.entries(ASKED))('name no studio, not even the right one: %s', async (rpc, asked) => {
    const { owner, secretSha256 } = await aKey();

    const [outcome] = await askWith(rpc, [{ ...asked(), studioId: owner.studioId }], [secretSha256]);

    expect(outcome?.refusal).toMatchObject({ reason: 'INVALID_REQUEST', fields: ['studioId'] });
    expect(countLeads(core.path, owner.studioId)).toBe(0);
  });

  test.each(Object.entries(ASKED))('all have one, or none has: %s', async (rpc, asked) => {
    const { owner, secretSha256 } = await aKey();

    const refusal = await refusalOf(askWith(rpc, [asked(), asked()], [secretSha256]));

    expect(refusal).toMatchObject({ code: 'INVALID_ARGUMENT', fields: ['secretSha256s'] });
    expect(countLeads(core.path, owner.studioId)).toBe(0);
  });
});

describe('many requests in one call', () => {
  test('in many messages: each result is that of its own request', async () => {
    let count = 0;
    const messages = [1, 100, 37, 64, 2, 100, 99, 1, 1, 55].map((length) =>
      times(length, () => capture({ displayName: `Lead ${count}`, note: `No. ${count++}` })),
    );

    const outcomes = await askInBatches<Created>(caller, BATCH_CREATE, messages);
    const again = await askInBatches<Created>(caller, BATCH_CREATE, [...messages].reverse());

    const byOrder = again.sort(({ answer: a }, { answer: b }) => numberOf(a?.lead) - numberOf(b?.lead));
    for (const [index, { answer }] of outcomes.entries()) {
      expect(answer).toMatchObject({ replayed: false, lead: { displayName: `Lead ${index}`, note: `No. ${index}` } });
      expect(byOrder[index]).toEqual({ answer: { ...answer, replayed: true } });
    }
    expect(outcomes).toHaveLength(count);
  });

  test('a hundred that are the same make one lead', async () => {
    const request = capture();

    const outcomes = await askInBatches<Created>(caller, BATCH_CREATE, [times(100, () => request)]);

    expect(outcomes.filter(({ answer }) => answer?.replayed === false)).toHaveLength(1);
    expect(outcomes.filter(({ answer }) => answer?.replayed === true)).toHaveLength(99);
    expect(new Set(outcomes.map(({ answer }) => answer?.lead.id)).size).toBe(1);
  });

  test('a hundred for one contact make one lead, and the others are told which', async () => {
    const contact = { email: `${newId()}@example.org` };

    const outcomes = await askInBatches<Created>(caller, BATCH_CREATE, [times(100, () => capture({ contact }))]);

    const [winner, ...more] = outcomes.flatMap(({ answer }) => answer ?? []);
    expect(more).toEqual([]);
    const losers = outcomes.flatMap(({ refusal }) => refusal ?? []);
    expect(losers).toHaveLength(99);
    for (const loser of losers) {
      expect(loser).toMatchObject({ reason: 'LEAD_ALREADY_OPEN', metadata: { leadId: winner?.lead.id } });
    }
  });

  test('results come while the call goes on, and one call does not wait for another', async () => {
    const [one, other] = [openBatches<Created>(caller, BATCH_CREATE), openBatches<Created>(caller, BATCH_CREATE)];
    for (const round of times(5, (each) => each)) {
      for (const call of [one, other]) {
        call.send([capture({ note: `${round}` })]);
        expect((await call.outcome(round)).answer?.lead.note).toBe(`${round}`);
      }
    }

    for (const call of [one, other]) {
      call.end();
      await call.ended;
      expect(call.outcomes.size).toBe(5);
    }
  });

  test('a call without requests ends without results', async () => {
    expect(await askInBatches(caller, BATCH_CREATE, [])).toEqual([]);
  });

  test('a store that does not take the writes fails these alone, and the next ones are written', async () => {
    const lock = new DatabaseSync(core.path);
    onTestFinished(() => lock.close());
    const call = openBatches<Created>(caller, BATCH_CREATE);
    const [written, unwritten] = [capture(), capture()];
    call.send([written]);
    expect((await call.outcome(0)).answer).toMatchObject({ replayed: false });

    lock.exec('BEGIN IMMEDIATE');
    call.send([capture({ note: '' }), unwritten, capture({ studioId: 'nowhere' }), capture()]);
    for (const [index, refusal] of [
      { reason: 'INVALID_REQUEST', fields: ['note'] },
      { code: 'UNAVAILABLE' },
      { reason: 'STUDIO_NOT_FOUND' },
      { code: 'UNAVAILABLE' },
    ].entries()) {
      expect((await call.outcome(1 + index)).refusal).toMatchObject(refusal);
    }
    expect((await call.outcome(2)).refusal).not.toHaveProperty('reason');
    lock.exec('ROLLBACK');

    call.send([unwritten, written]);
    expect((await call.outcome(5)).answer).toMatchObject({ replayed: false });
    expect((await call.outcome(6)).answer).toMatchObject({ replayed: true });
    call.end();
    await call.ended;
  });

  const numberOf = (lead: WireLead | undefined) => Number(lead?.displayName.split(' ')[1]);
});

describe.each(Object.entries(BATCH_METHODS))('a message of %s that is not valid', (rpc, request) => {
  test.each<[string, () => [requests: object[], requestIds?: string[]], string]>([
    ['has no requests', () => [[]], 'requests'],
    ['has a hundred and one requests', () => [times(101, request)], 'requests'],
    ['names fewer requests than it has', () => [times(2, request), ['one']], 'requestIds'],
    ['names more requests than it has', () => [[request()], ['one', 'two']], 'requestIds'],
  ])('because it %s fails the call, and what came before it is answered', async (_, message, field) => {
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

describe('the size of a message', () => {
  const largest = () =>
    capture({
      displayName: '🦉'.repeat(160),
      note: '🦉'.repeat(2000),
      contact: { email: `${newId()}${'🦉'.repeat(206)}@example.org` },
    });

  test('a hundred of the largest leads fit into one, as do the pages that list them', async () => {
    const sourceId = await aSource();
    const requests = times(100, () => ({ ...largest(), sourceId }));
    const call = openBatches<Created>(caller, BATCH_CREATE);

    call.send(
      requests,
      times(100, () => 'x'.repeat(128)),
    );
    call.end();
    await call.ended;

    expect([...call.outcomes.values()].filter(({ answer }) => answer?.replayed === false)).toHaveLength(100);
    const lists = times(20, () => ({ studioId, pageSize: 100, view: 'LEAD_VIEW_FULL' }));
    const pages = await askInBatches<{ leads: WireLead[] }>(caller, 'LeadIntakeService/BatchListLeads', [lists]);
    for (const { answer } of pages) expect(answer?.leads).toHaveLength(100);
  });

  test('more than a megabyte is refused, and the connection serves on', async () => {
    const call = openBatches(caller, BATCH_CREATE);
    call.send([capture()]);
    await call.outcome(0);

    call.send(times(100, () => capture({ note: 'x'.repeat(11_000) })));

    expect(await refusalOf(call.ended)).toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
    expect(await create(capture())).toMatchObject({ replayed: false });
  });

  test('a request that is a call of its own still has 64 KiB', async () => {
    const note = 'x'.repeat(64 * 1024);

    expect(await askInBatches(caller, BATCH_CREATE, [[capture({ note })]])).toMatchObject([
      { refusal: { reason: 'INVALID_REQUEST', fields: ['note'] } },
    ]);
    expect(await refusalOf(create(capture({ note })))).toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
  });
});

describe('a caller without the token', () => {
  const UNAUTHENTICATED = { code: 'UNAUTHENTICATED', reason: 'CALLER_UNAUTHENTICATED' };

  test.each(Object.keys(BATCH_METHODS))('is refused by %s before it has sent anything', async (rpc) => {
    for (const authorization of [undefined, 'Bearer wrong', CORE_TOKEN]) {
      const call = openBatches(caller, rpc, { authorization });

      expect(await refusalOf(call.ended)).toMatchObject(UNAUTHENTICATED);
    }
  });

  test.each(['CreateLead', 'BatchCreateLeads'])('is refused by %s before the body is read', async (method) => {
    const session = connect(core.url);
    onTestFinished(() => session.destroy());
    const stream = session.request({
      ':method': 'POST',
      ':path': `/leadintake.v1.LeadIntakeService/${method}`,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    // The head of a message that is too large, and nothing of it.
    stream.write(Buffer.of(0, 0xff, 0xff, 0xff, 0xff));

    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];

    const trailers =
      'grpc-status' in headers ? headers : ((await once(stream.resume(), 'trailers'))[0] as typeof headers);
    expect(trailers['grpc-status']).toBe('16');
  });
});

describe('the log', () => {
  test('has one line for each request, by the name that its caller gave it, and nothing of what it carried', async () => {
    const own = run('src/main.ts', {
      env: { DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}`, CORE_TOKEN },
    });
    const client = grpcCaller(new URL(await addressOf(own)).host);
    onTestFinished(() => client.close());
    const marked = { studioId: await aStudio({ on: client }), displayName: 'Secret name', note: 'Secret note' };
    const first = capture({ ...marked, contact: { email: 'secret@example.org' } });
    const secretSha256 = randomBytes(32);

    const creates = openBatches<Created>(client, BATCH_CREATE);
    creates.send([first, capture({ ...marked, contact: { phone: '030 5550199' } })], ['create-0', 'create-1']);
    await creates.outcome(0);
    creates.send(
      [capture({ ...first, note: 'Secret other' }), capture({ ...marked, displayName: '' })],
      ['create-2', 'create-3'],
    );
    creates.send([capture(marked)]);
    creates.end();
    await creates.ended;
    const gets = openBatches(client, 'LeadIntakeService/BatchGetLeads');
    gets.send([{ studioId: marked.studioId, leadId: newId() }], ['get-0']);
    const lists = openBatches(client, 'LeadIntakeService/BatchListLeads');
    lists.send([{ studioId: marked.studioId }], ['list-0']);
    const keys = openBatches(client, 'ApiKeyService/BatchAuthenticateApiKeys');
    keys.send([{ secretSha256 }], ['key-0']);
    for (const call of [gets, lists, keys]) {
      call.end();
      await call.ended;
    }
    await refusalOf(openBatches(client, BATCH_CREATE, { authorization: 'Bearer stolen' }).ended);
    own.child.kill('SIGTERM');
    expect(await own.ended()).toBe(0);

    const lines = own
      .output()
      .split('\n')
      .filter((line) => line.includes('"operation"') && !line.includes('"Put'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.map(({ operation, requestId, outcome }) => [requestId, operation, outcome]).sort(byText)).toEqual(
      [
        ['create-0', 'CreateLead', 'ok'],
        ['create-1', 'CreateLead', 'ok'],
        ['create-2', 'CreateLead', 'IDEMPOTENCY_CONFLICT'],
        ['create-3', 'CreateLead', 'INVALID_REQUEST'],
        [undefined, 'CreateLead', 'ok'],
        ['get-0', 'GetLead', 'LEAD_NOT_FOUND'],
        ['list-0', 'ListLeads', 'ok'],
        ['key-0', 'AuthenticateApiKey', 'KEY_INVALID'],
        [undefined, 'BatchCreateLeads', 'CALLER_UNAUTHENTICATED'],
      ].sort(byText),
    );
    for (const line of lines) expect(line.durationMs).toEqual(expect.any(Number));
    expect(own.output()).not.toMatch(/secret|@example|5550199|stolen/i);
    expect(own.output()).not.toContain(secretSha256.toString('hex'));
    expect(own.output()).not.toContain(secretSha256.toString('base64'));
  });

  const byText = (a: unknown, b: unknown) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);
});

describe('a caller that does not take its results', () => {
  test('is held back, nobody else is, and it gets them all once it takes them', async () => {
    const deaf = openWithoutReading(core.url);
    onTestFinished(() => deaf.session.destroy());
    const messages = times(60, () => times(100, () => capture({ note: LONG_NOTE })));
    const sent = deaf.send(messages);

    await expect.poll(() => countLeads(core.path), { timeout: 20_000 }).toBeGreaterThanOrEqual(MOST_OPEN);
    const others = await aStudio();
    for (const _ of times(300, () => 0)) await create(capture({ studioId: others }));
    // One message more than the most, and what the network has taken.
    expect(countLeads(core.path)).toBeLessThan(1.5 * MOST_OPEN);

    const results = await deaf.results();
    await sent;
    expect(results.map(({ index }) => index ?? 0).sort((a, b) => a - b)).toEqual(times(6000, (index) => index));
    expect(results.every(({ response }) => response.lead.note === LONG_NOTE)).toBe(true);
    expect(countLeads(core.path)).toBe(6000);
  });
});

describe('a caller that vanishes in the middle', () => {
  test('its leads exist at most once, it can ask again, and the core stops promptly', async () => {
    const { other, client, own } = await anotherCore();
    const { leaving, vanish } = await aLeavingCaller(other);
    const messages = times(30, () => times(100, () => capture({ studioId: own })));
    const call = openBatches<Created>(leaving, BATCH_CREATE);
    for (const message of messages) call.send(message);
    await call.outcome(0);
    vanish();
    expect(await refusalOf(call.ended)).toMatchObject({ code: 'UNAVAILABLE' });

    const outcomes = await askInBatches<Created>(client, BATCH_CREATE, messages);

    const ids = outcomes.map(({ answer }) => answer?.lead.id);
    expect(new Set(ids).size).toBe(3000);
    for (const [index, { answer }] of call.outcomes) expect(answer?.lead.id).toBe(ids[index]);
    expect(await countLeads(other.path, own)).toBe(3000);
    await expectPromptStop(other);
  });
});

describe('a core that stops', () => {
  test('ends open calls without an error, whether they ever had a request or not', async () => {
    const { other, client, own } = await anotherCore();
    const calls = Object.keys(BATCH_METHODS).flatMap((rpc) => times(3, () => openBatches(client, rpc)));
    const used = openBatches<Created>(client, BATCH_CREATE);
    used.send([capture({ studioId: own })]);
    await used.outcome(0);

    await expectPromptStop(other);

    for (const call of [...calls, used]) await call.ended;
  });

  test('does not wait for a caller that leaves its end of the connection open', async () => {
    const { other } = await anotherCore();
    const socket = connectSocket({ host: '127.0.0.1', port: other.port, allowHalfOpen: true });
    onTestFinished(() => {
      socket.destroy();
    });
    // How HTTP/2 begins, and settings that change nothing.
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    socket.write(Buffer.from('000000040000000000', 'hex'));
    await once(
      socket.on('error', () => {}),
      'data',
    );

    await other.stop();
  });

  test.each(times(5, (round) => round))(
    'has answered all that it has looked at, and written nothing else (round %i)',
    async (round) => {
      const { other, own } = await anotherCore();
      const database = new DatabaseSync(other.path);
      onTestFinished(() => database.close());

      const sent = await createUntilItEnds(other.url, own, 200 * (round + 1), () => other.stop());

      expectWrittenIfAnswered(sent, database);
    },
  );

  test('does so as a process that is told to end', async () => {
    const path = join(temporaryFolder(), 'leads.db');
    const running = run('src/main.ts', { env: { DATABASE_URL: `sqlite:${path}`, CORE_TOKEN } });
    const url = await addressOf(running);
    const client = grpcCaller(new URL(url).host);
    onTestFinished(() => client.close());

    const sent = await createUntilItEnds(url, await aStudio({ on: client }), 500, async () => {
      running.child.kill('SIGTERM');
      expect(await running.ended()).toBe(0);
    });

    const database = new DatabaseSync(path);
    onTestFinished(() => database.close());
    expectWrittenIfAnswered(sent, database);
  });

  /** The idempotency key of each creation that was sent, and the id of its lead if there was a result. */
  type Sent = readonly (readonly [key: string, leadId: string | undefined])[];

  /**
   * Sends creations until the call ends, as fast as they are taken. The client is not that of gRPC: that one may take the
   * end of a call for a fault while it is sending.
   *
   * @param stop is called when there are so many results
   */
  async function createUntilItEnds(url: string, own: string, after: number, stop: () => Promise<void>): Promise<Sent> {
    const transport = createConnectTransport({
      baseUrl: url,
      httpVersion: '2',
      useBinaryFormat: true,
      interceptors: [withToken],
    });
    const keys: string[] = [];
    const leadIds = new Map<number, string | undefined>();
    let stopped: Promise<void> | undefined;
    let isOver = false;
    async function* messages() {
      while (!isOver) {
        const requests = times(1 + (keys.length % 100), () => captureOf(newId(), own));
        keys.push(...requests.map(({ idempotencyKey }) => idempotencyKey));
        yield { requests };
      }
    }
    for await (const { results } of createClient(LeadIntakeService, transport).batchCreateLeads(messages())) {
      for (const { index, outcome } of results) {
        expect([outcome.case, leadIds.has(index)]).toEqual(['response', false]);
        leadIds.set(index, outcome.case === 'response' ? outcome.value.lead?.id : undefined);
      }
      if (leadIds.size >= after) stopped ??= stop();
    }
    isOver = true;
    await stopped;
    // Else the end did not come in the middle.
    expect(leadIds.size).toBeLessThan(keys.length);
    return keys.map((key, index) => [key, leadIds.get(index)] as const);
  }

  function expectWrittenIfAnswered(sent: Sent, database: DatabaseSync): void {
    const rows = database.prepare('SELECT idempotency_key AS key, id FROM leads').all();
    const written = new Map(rows.map(({ key, id }) => [key, id]));
    expect(sent.map(([key]) => [key, written.get(key)])).toEqual(sent);
    expect(written.size).toBe(sent.filter(([, leadId]) => leadId !== undefined).length);
  }
});

describe('other clients than that of gRPC', () => {
  test.each<[string, (options: { baseUrl: string; httpVersion: '2' }) => Transport]>([
    ['Connect', (options) => createConnectTransport({ ...options, interceptors: [withToken] })],
    [
      'Connect with binary messages',
      (options) => createConnectTransport({ ...options, useBinaryFormat: true, interceptors: [withToken] }),
    ],
    ["Connect's gRPC", (options) => createGrpcTransport({ ...options, interceptors: [withToken] })],
  ])('%s: each request is answered as it would be alone', async (_, transport) => {
    const client = createClient(LeadIntakeService, transport({ baseUrl: core.url, httpVersion: '2' }));
    const email = newId();
    const request = (overrides: object = {}) => ({ ...captureOf(email), ...overrides });
    const first = request();

    const outcomes = new Map<number, unknown>();
    for await (const { results } of client.batchCreateLeads(
      (async function* () {
        yield { requests: [first] };
        while (outcomes.size < 1) await sleep(1);
        yield { requests: [first, request({ note: '' }), request()], requestIds: ['a', 'b', 'c'] };
      })(),
    )) {
      for (const { index, outcome } of results) {
        const details =
          outcome.case === 'error'
            ? outcome.value.details.map((detail) =>
                anyUnpack(detail, createRegistry(ErrorInfoSchema, BadRequestSchema)),
              )
            : [];
        outcomes.set(index, { ...outcome.value, details });
      }
    }

    const { lead } = await client.createLead(first);
    expect([0, 1, 2, 3].map((index) => outcomes.get(index))).toMatchObject([
      { lead, replayed: false },
      { lead, replayed: true },
      {
        code: 3,
        details: [{ reason: 'INVALID_REQUEST', domain: 'leadintake' }, { fieldViolations: [{ field: 'note' }] }],
      },
      { code: 6, details: [{ reason: 'LEAD_ALREADY_OPEN', domain: 'leadintake', metadata: { leadId: lead?.id } }] },
    ]);
    expect(outcomes.size).toBe(4);
  });
});

const withToken: Interceptor = (next) => (request) => {
  request.header.set('authorization', `Bearer ${CORE_TOKEN}`);
  return next(request);
};

/** A creation as Connect's client sends it. */
const captureOf = (email: string, of = studioId) => ({
  studioId: of,
  idempotencyKey: newId(),
  displayName: 'Ada Lovelace',
  contact: { value: { case: 'email' as const, value: `${email}@example.org` } },
});

/** A core of one's own, with a studio and a client. */
async function anotherCore() {
  const path = join(temporaryFolder(), 'leads.db');
  const other = { ...(await startTestCore({ DATABASE_URL: `sqlite:${path}` })), path };
  const client = grpcCaller(`127.0.0.1:${other.port}`);
  onTestFinished(async () => {
    client.close();
    await other.stop();
  });
  return { other, client, own: await aStudio({ on: client }) };
}

/** A caller whose connection can break. */
async function aLeavingCaller({ port }: TestCore) {
  const proxy = await startProxy('127.0.0.1', port);
  const leaving = grpcCaller(`127.0.0.1:${proxy.port}`);
  onTestFinished(async () => {
    leaving.close();
    await proxy.stop();
  });
  return { leaving, vanish: () => proxy.refuse() };
}

/**
 * Begins a call of BatchCreateLeads over a connection of its own, in Connect's JSON, whose bytes one can leave where they are:
 * the client of gRPC takes them from the network whether anybody wants them or not.
 */
function openWithoutReading(url: string) {
  const session = connect(url);
  const stream = session.request({
    ':method': 'POST',
    ':path': '/leadintake.v1.LeadIntakeService/BatchCreateLeads',
    'content-type': 'application/connect+json',
    authorization: `Bearer ${CORE_TOKEN}`,
  });
  for (const side of [session, stream]) side.on('error', () => {});
  return {
    session,
    stream,
    /** Sends messages as the other side takes them, and the end after the last. */
    async send(messages: readonly (readonly object[])[]): Promise<void> {
      for (const requests of messages) {
        const bytes = Buffer.from(JSON.stringify({ requests }));
        const head = Buffer.alloc(5);
        head.writeUInt32BE(bytes.length, 1);
        await new Promise((resolve) => stream.write(Buffer.concat([head, bytes]), resolve));
      }
      if (messages.length > 1) stream.end();
    },
    /** Takes everything that comes until the end. */
    async results(): Promise<{ index?: number; response: Created }[]> {
      const results: { index?: number; response: Created }[] = [];
      let bytes = await buffer(stream);
      while (bytes.length > 0) {
        const end = 5 + bytes.readUInt32BE(1);
        const message = JSON.parse(bytes.toString('utf8', 5, end));
        // The last one tells how the call ended.
        if (bytes[0] === 2) expect(message).not.toHaveProperty('error');
        else results.push(...message.results);
        bytes = bytes.subarray(end);
      }
      return results;
    },
  };
}

/** How long a stop may take that waits for nobody; milliseconds. Connections that do not end are cut off after 3000. */
const PROMPT_MS = 2500;

async function expectPromptStop(of: TestCore): Promise<void> {
  const started = performance.now();
  await of.stop();
  expect(performance.now() - started).toBeLessThan(PROMPT_MS);
}
