import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fromBinary } from '@bufbuild/protobuf';
import { createClient, type Interceptor } from '@connectrpc/connect';
import { createConnectTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { CoreToken, connectToCore } from '../../common/core-connection.ts';
import type { PublicLead } from '../../common/rules/public-api.ts';
import { Secret } from '../../common/secret.ts';
import { TlsCredentials } from '../../common/tls-credentials.ts';
import { exchangeOver } from '../../gateway/core/exchange-calls.ts';
import { leadListSchema, leadResponseSchema } from '../../gateway/routes/schemas.ts';
import {
  ExchangeRequestSchema,
  type ExchangeResult,
  ExchangeService,
} from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { newId } from '../../src/domain/new-id.ts';
import { plus, times } from '../support/builders.ts';
import { expectValid } from '../support/documented.ts';
import {
  allOutcomes,
  type ExchangeAnswer,
  exchange,
  jsonOf,
  type Outcome,
  openExchange,
  outcomeOf,
} from '../support/exchange-calls.ts';
import {
  aCreation,
  CORE_TOKEN,
  grpcCaller,
  type PackedStatus,
  refusalIn,
  refusalOf,
  requestBytes,
  startTestCore,
} from '../support/grpc.ts';
import {
  countLeads,
  createKey,
  type KeyOfStudio,
  putSource,
  removeIssuer,
  revokeKey,
  suspendStudio,
} from '../support/grpc-studios.ts';
import { scrape } from '../support/metrics.ts';
import { openUnreadCall } from '../support/unread-call.ts';
import { aSharedCore } from './shared-core.ts';
import { millis, type WireLead, type WireTime } from './wire-lead.ts';

/** The size from which a message of results is full; bytes. */
const FULL_BYTES = 64 * 1024;

/** The maximum number of requested leads that the caller has not read. */
const MAX_LEADS_OPEN = 1000;

/** The largest message that a gateway reads, and gRPC clients by default; bytes. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

const { core, caller } = aSharedCore();
let key: KeyOfStudio;

beforeEach(async () => {
  key = await createKey(caller);
});

const authenticateItem = (of = key) => ({ secretSha256: of.secretSha256, authenticate: {} });
const createItem = (creation: object = aCreation(), of = key) => ({
  secretSha256: of.secretSha256,
  createLead: creation,
});
const getItem = (leadId: string, of = key) => ({ secretSha256: of.secretSha256, getLead: { leadId } });
const listItem = (page: object = {}, of = key) => ({ secretSha256: of.secretSha256, listLeads: page });

/** One item of each kind. */
const ofEachKind = (of = key, leadId: string = newId()) => [
  authenticateItem(of),
  createItem(aCreation(), of),
  getItem(leadId, of),
  listItem({}, of),
];

interface WirePage {
  readonly leads: readonly WireLead[];
  readonly nextPageToken: string;
}

/** The public form of a lead of the CRM API. */
function publicForm({ id, displayName, sourceId, note, stage, createTime, updateTime }: WireLead): PublicLead {
  return {
    id,
    displayName,
    stage: stage.replace('LEAD_STAGE_', '').toLowerCase() as PublicLead['stage'],
    sourceId: sourceId ?? null,
    note: note ?? null,
    createdAt: timeOf(createTime),
    updatedAt: timeOf(updateTime),
  };
}

const timeOf = (time: WireTime) => new Date(millis(time)).toISOString();

/** The method that corresponds to an item, as a single call. */
const createAlone = (creation: object, of = key) =>
  caller.call<{ lead: WireLead; replayed: boolean }>('LeadIntakeService/CreateLead', {
    studioId: of.owner.studioId,
    ...creation,
  });
const getAlone = (leadId: string, of = key) =>
  caller.call<{ lead: WireLead }>('LeadIntakeService/GetLead', { studioId: of.owner.studioId, leadId });
const listAlone = (page: object, of = key) =>
  caller.call<WirePage>('LeadIntakeService/ListLeads', { studioId: of.owner.studioId, ...page });
const authenticateAlone = ({ secretSha256 }: Pick<KeyOfStudio, 'secretSha256'>) =>
  caller.call('ApiKeyService/AuthenticateApiKey', { secretSha256 });

const changeStage = (leadId: string, stage: string, { owner: { studioId } } = key) =>
  caller.call('LeadIntakeService/ChangeLeadStage', { studioId, leadId, stage });

/** The outcome of an item, with its body parsed. */
function parsed({ answer, refusal }: Outcome) {
  if (!answer) return { refusal };
  const { body, bearer, leadId, replayed } = answer;
  return body ? { json: jsonOf(answer), leadId, replayed } : { bearer, leadId, replayed };
}

/** Sends items in one message; returns their outcomes. */
const send = (...items: readonly object[]) => exchange(caller, [items]);

/** The only answer to an item. */
async function answerTo(item: object): Promise<ExchangeAnswer> {
  const [outcome] = await send(item);
  expect(outcome?.refusal).toBeUndefined();
  return outcome?.answer as ExchangeAnswer;
}

// @proves exchange-1
describe('each item gets one result, that of a single call', () => {
  /** Items, each with the outcome of the corresponding single call. */
  async function itemsWithResults(): Promise<readonly (readonly [item: object, expected: object])[]> {
    const other = await createKey(caller);
    const sourceId = await putSource(caller, key.owner.studioId);
    const [mine, theirs] = [aCreation({ sourceId, note: 'mine' }), aCreation()];
    const { lead } = await createAlone(mine);
    const { lead: elsewhere } = await createAlone(theirs, other);
    for (const note of ['1', '2', '3']) await createAlone(aCreation({ note }));
    const ofRead = { leadId: '', replayed: false };
    const pageOf = ({ leads, nextPageToken }: WirePage) => ({
      json: { leads: leads.map(publicForm), nextCursor: nextPageToken || null },
      ...ofRead,
    });
    const first = await listAlone({ pageSize: 3 });
    const second = { pageSize: 3, pageToken: first.nextPageToken };

    const creations = [
      { ...mine, note: 'other' },
      aCreation({ contact: mine.contact }),
      aCreation({ sourceId: await putSource(caller, key.owner.studioId, false) }),
      aCreation({ sourceId: await putSource(caller, other.owner.studioId) }),
      aCreation({ sourceId: newId() }),
      aCreation({ displayName: '', contact: { phone: '1' }, note: '', sourceId: 'x' }),
      {},
    ];
    const ids = [newId(), elsewhere.id, '', 'x', `${lead.id} `];
    const pages = [{ pageSize: -1 }, { pageToken: '.' }, { pageSize: -2, pageToken: 'x'.repeat(600) }];
    const refusalTo = async (call: Promise<unknown>) => ({ refusal: await refusalOf(call) });
    return [
      [authenticateItem(), { bearer: await authenticateAlone(key), ...ofRead }],
      [authenticateItem(other), { bearer: await authenticateAlone(other), ...ofRead }],
      [createItem(mine), { json: { lead: publicForm(lead) }, leadId: lead.id, replayed: true }],
      [createItem(theirs, other), { json: { lead: publicForm(elsewhere) }, leadId: elsewhere.id, replayed: true }],
      ...(await Promise.all(
        creations.map(async (each) => [createItem(each), await refusalTo(createAlone(each))] as const),
      )),
      [getItem(lead.id), { json: { lead: publicForm((await getAlone(lead.id)).lead) }, ...ofRead }],
      [getItem(lead.id.toUpperCase()), { json: { lead: publicForm(lead) }, ...ofRead }],
      ...(await Promise.all(ids.map(async (each) => [getItem(each), await refusalTo(getAlone(each))] as const))),
      [listItem(), pageOf(await listAlone({}))],
      [listItem({ pageSize: 3 }), pageOf(first)],
      [listItem(second), pageOf(await listAlone(second))],
      [listItem({}, other), pageOf(await listAlone({}, other))],
      [listItem(second, other), await refusalTo(listAlone(second, other))],
      ...(await Promise.all(pages.map(async (each) => [listItem(each), await refusalTo(listAlone(each))] as const))),
    ];
  }

  test.each<[string, (items: readonly object[]) => readonly (readonly object[])[]]>([
    ['in one message', (items) => [items]],
    ['four times, in messages of seven', (items) => inSevens(times(4, () => items).flat())],
  ])('%s', async (_, messagesOf) => {
    const pairs = await itemsWithResults();
    const messages = messagesOf(pairs.map(([item]) => item));

    const outcomes = await exchange(caller, messages);

    const expectedOf = new Map<object, object>(pairs);
    expect(outcomes.map(parsed)).toEqual(messages.flat().map((item) => expectedOf.get(item)));
    expect(countLeads(core.path, key.owner.studioId)).toBe(4);
  });

  const inSevens = (items: readonly object[]) =>
    times(Math.ceil(items.length / 7), (index) => items.slice(7 * index, 7 * index + 7));
});

// @proves exchange-1
test.each([
  ['as a gateway calls', { acceptCompression: [] }],
  ['by a client that takes compressed messages', {}],
])('by Connect, %s, items get the results of gRPC', async (_, options) => {
  const { leadId } = await answerTo(createItem());
  const messages = [
    [authenticateItem(), getItem(leadId), getItem('x')],
    [listItem(), listItem({ pageSize: -1 })],
    [createItem({}), ...ofEachKind({ ...key, secretSha256: randomBytes(32) })],
  ];
  const sent = async function* () {
    for (const items of messages) {
      yield fromBinary(ExchangeRequestSchema, requestBytes('ExchangeService/Exchange', { items }));
    }
  };
  const sessionManager = new Http2SessionManager(core.url);
  onTestFinished(() => sessionManager.abort());
  const interceptors: Interceptor[] = [
    (next) => (request) => {
      request.header.set('authorization', `Bearer ${CORE_TOKEN}`);
      return next(request);
    },
  ];
  const connected = { baseUrl: core.url, httpVersion: '2', sessionManager, interceptors } as const;
  const results: ExchangeResult[] = [];

  const client = createClient(ExchangeService, createConnectTransport({ ...connected, ...options }));
  for await (const message of client.exchange(sent())) results.push(...message.results);

  const expected = await exchange(caller, messages);
  expect(results.map(({ index }) => index).toSorted((a, b) => a - b)).toEqual([...expected.keys()]);
  for (const { index, outcome } of results) {
    const { answer, refusal } = expected[index] as Outcome;
    if (outcome.case === 'body') expect(Buffer.from(outcome.value)).toEqual(answer?.body);
    else if (outcome.case === 'bearer') expect(outcome.value.apiKeyId).toBe(answer?.bearer?.apiKeyId);
    else expect(outcome.value?.message).toBe(refusal?.message);
  }
});

// @proves exchange-3
describe('the body', () => {
  test('of a lead and of a page has the created leads, without their contacts', {
    tags: ['2.1.no-contact', '2.3.lead', '2.4.leads'],
  }, async () => {
    const created: PublicLead[] = [];
    for (const overrides of [{}, { note: 'x' }, { sourceId: await putSource(caller, key.owner.studioId) }]) {
      const { lead } = jsonOf<{ lead: PublicLead }>(await answerTo(createItem(aCreation(overrides))));
      created.unshift(lead);
    }
    await changeStage(created[0]?.id ?? '', 'LEAD_STAGE_TRIAL_BOOKED');

    const [page, ...leads] = await send(listItem(), ...created.map(({ id }) => getItem(id)));

    const now = (await listAlone({})).leads.map(publicForm);
    expect(now).toEqual([
      { ...created[0], stage: 'trial_booked', updatedAt: expect.not.stringMatching(created[0]?.createdAt ?? '') },
      ...created.slice(1),
    ]);
    expect(leads.map(({ answer }) => jsonOf(answer))).toEqual(now.map((lead) => ({ lead })));
    expect(jsonOf(page?.answer)).toEqual({ leads: now, nextCursor: null });
    for (const { answer } of leads) expectValid('body', leadResponseSchema, jsonOf(answer));
    expectValid('body', leadListSchema, jsonOf(page?.answer));
    for (const { answer } of [page, ...leads].flatMap((outcome) => outcome ?? [])) {
      expect(`${answer?.body}`).not.toMatch(/contact"|@example|studio-/);
      expect(answer).toMatchObject({ leadId: '', replayed: false });
    }
  });
});

describe('a key', () => {
  /** Keys that are refused, each for the first of its faults. */
  async function refusedKeys(): Promise<readonly (readonly [secretSha256: Buffer, reason: string])[]> {
    const [revoked, suspended, orphaned] = [await createKey(caller), await createKey(caller), await createKey(caller)];
    const [everything, allButTheKey] = [await createKey(caller), await createKey(caller)];
    const expired = await createKey(caller, { expiresAt: plus(new Date(), 2000) });
    for (const each of [revoked, everything]) await revokeKey(caller, each);
    for (const each of [suspended, everything, allButTheKey]) await suspendStudio(caller, each);
    for (const each of [orphaned, everything, allButTheKey]) await removeIssuer(caller, each);
    await expect.poll(async () => (await outcomeOf(authenticateAlone(expired))).refusal).toBeDefined();
    return [
      [randomBytes(32), 'KEY_INVALID'],
      [revoked.secretSha256, 'KEY_INVALID'],
      [expired.secretSha256, 'KEY_INVALID'],
      [suspended.secretSha256, 'STUDIO_SUSPENDED'],
      [orphaned.secretSha256, 'ISSUER_FORBIDDEN'],
      [everything.secretSha256, 'KEY_INVALID'],
      [allButTheKey.secretSha256, 'STUDIO_SUSPENDED'],
      [randomBytes(31), 'INVALID_REQUEST'],
      [randomBytes(33), 'INVALID_REQUEST'],
      [Buffer.alloc(0), 'INVALID_REQUEST'],
    ];
  }

  // @proves exchange-4
  test('that is refused has the same refusal as in a single call, before the item is validated', {
    tags: ['5.8', '5.10', '5.11', '7.order'],
  }, async () => {
    const before = countLeads(core.path, '%');
    for (const [secretSha256, reason] of await refusedKeys()) {
      const refusal = await refusalOf(authenticateAlone({ secretSha256 }));
      expect(refusal).toMatchObject({ reason, ...(reason === 'INVALID_REQUEST' && { fields: ['secretSha256'] }) });
      const ofKey = { ...key, secretSha256 };
      const items = [
        ...ofEachKind(ofKey),
        createItem(aCreation({ sourceId: newId() }), ofKey),
        createItem({}, ofKey),
        getItem('x', ofKey),
        listItem({ pageSize: -1 }, ofKey),
        { secretSha256 },
      ];

      expect(await send(...items)).toEqual(items.map(() => ({ refusal })));
    }
    expect(countLeads(core.path, '%')).toBe(before);
  });

  // @proves exchange-4
  test.each([
    ['API_KEY_SCOPE_LEADS_READ', ['createLead']],
    ['API_KEY_SCOPE_LEADS_CREATE', ['getLead', 'listLeads']],
  ])(
    'that has only %s is refused other items, whatever else is wrong, and nothing is written',
    { tags: ['5.9', '7.order'] },
    async (scope, forbidden) => {
      const { lead } = await createAlone(aCreation());
      const narrow = await createKey(caller, { studioId: key.owner.studioId, scopes: [scope] });
      const wrong: readonly object[] = [
        createItem({}, narrow),
        createItem(aCreation({ sourceId: newId() }), narrow),
        getItem('x', narrow),
        listItem({ pageToken: '.' }, narrow),
      ];
      const items = [...ofEachKind(narrow, lead.id), ...wrong];

      const outcomes = await send(...items);

      for (const [index, item] of items.entries()) {
        const isForbidden = forbidden.some((kind) => kind in item);
        const { answer, refusal } = outcomes[index] as Outcome;
        if (isForbidden) expect(refusal).toMatchObject({ code: 'PERMISSION_DENIED', reason: 'SCOPE_FORBIDDEN' });
        else if (wrong.includes(item)) expect(refusal?.reason).toMatch(/^(INVALID_REQUEST|SOURCE_INVALID)$/);
        else expect(answer).toBeDefined();
        // A refusal for the key reveals nothing about the item.
        if (isForbidden) expect(refusal).not.toHaveProperty('fields');
      }
      expect(outcomes[0]?.answer?.bearer?.scopes).toEqual([scope]);
      expect(countLeads(core.path, key.owner.studioId)).toBe(forbidden.includes('createLead') ? 1 : 2);
    },
  );

  // @proves exchange-4
  test('gives access to its own studio only, whatever the other items', { tags: ['1.own-studio', '5.2'] }, async () => {
    const other = await createKey(caller);
    const contact = { email: `${newId()}@example.org` };
    const creation = aCreation({ contact });

    // The same idempotency key and contact: in two studios these are two leads.
    const created = await send(createItem(creation), createItem(creation, other), createItem(creation));
    const [mine, theirs, again] = created.map(({ answer }) => answer);
    expect([mine?.replayed, theirs?.replayed, again?.replayed]).toEqual([false, false, true]);
    expect(again?.leadId).toBe(mine?.leadId);
    expect(theirs?.leadId).not.toBe(mine?.leadId);
    for (const of of [key, other]) expect(countLeads(core.path, of.owner.studioId)).toBe(1);

    const ids = [mine?.leadId ?? '', theirs?.leadId ?? ''];
    const read = await send(
      ...[key, other, key].flatMap((of) => [...ids.map((id) => getItem(id, of)), listItem({}, of)]),
    );
    const LEAD_NOT_FOUND = { refusal: await refusalOf(getAlone(newId())) };
    const [own, elsewhere] = ids.map((id) => ({ lead: { id } }));
    expect(read.map(({ answer, refusal }) => (answer ? jsonOf(answer) : { refusal }))).toMatchObject(
      [
        [own, LEAD_NOT_FOUND, { leads: [{ id: ids[0] }] }],
        [LEAD_NOT_FOUND, elsewhere, { leads: [{ id: ids[1] }] }],
        [own, LEAD_NOT_FOUND, { leads: [{ id: ids[0] }] }],
      ].flat(),
    );
  });

  // @proves exchange-4
  test('is checked again for each message, with its permissions', {
    tags: ['5.8', '5.10', '5.11'],
  }, async () => {
    for (const [change, reason] of [
      [revokeKey, 'KEY_INVALID'],
      [suspendStudio, 'STUDIO_SUSPENDED'],
      [removeIssuer, 'ISSUER_FORBIDDEN'],
    ] as const) {
      const own = await createKey(caller);
      const call = openExchange(caller);
      const { lead } = await createAlone(aCreation(), own);
      call.send(ofEachKind(own, lead.id));
      for (const index of [0, 1, 2, 3]) expect((await call.outcome(index)).refusal).toBeUndefined();

      await change(caller, own);

      call.send(ofEachKind(own, lead.id));
      for (const index of [4, 5, 6, 7]) expect((await call.outcome(index)).refusal?.reason).toBe(reason);
      await allOutcomes(call, 8);
      expect(countLeads(core.path, own.owner.studioId)).toBe(2);
    }
  });
});

describe('an item', () => {
  /** An item with a bytes field that this release does not know, as a later release may send. */
  const ofLaterRelease = ({ secretSha256 }: KeyOfStudio) =>
    Buffer.concat([
      Buffer.from([0x1a, 32]),
      secretSha256,
      // Field 15, of type bytes.
      Buffer.from([0x7a, 3, 1, 2, 3]),
    ]);

  test('of a kind of a later release is refused, and its neighbours get their results', async () => {
    const known = requestBytes('ExchangeService/Exchange', { items: [createItem()] });
    const unknown = ofLaterRelease(key);
    // Field 1, of type bytes.
    const message = Buffer.concat([known, Buffer.from([0x0a, unknown.length]), unknown, known]);
    const stream = caller.openBytes('ExchangeService/Exchange');
    const results: { index: number; body?: Buffer; error?: PackedStatus }[] = [];
    stream.on('data', (message: { results: typeof results }) => results.push(...message.results));
    stream.write(message);
    stream.end();
    await once(stream, 'end');

    const [first, second, third] = results.sort((a, b) => a.index - b.index);
    expect([first, third]).toMatchObject(times(2, () => ({ body: expect.any(Buffer) })));
    expect(refusalIn(second?.error as PackedStatus)).toMatchObject({ reason: 'INVALID_REQUEST', fields: ['request'] });
    expect(countLeads(core.path, key.owner.studioId)).toBe(1);
  });
});

describe('a message', () => {
  test.each([
    ['no items', 0],
    ['a hundred and one items', 101],
  ])('with %s fails the call and writes nothing, and earlier messages get their results', async (_, count) => {
    const call = openExchange(caller);
    call.send(times(100, () => createItem()));
    call.send(times(count, () => createItem()));
    call.send([createItem()]);

    expect(await refusalOf(call.ended)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'INVALID_REQUEST',
      domain: 'leadintake',
      fields: ['items'],
    });
    expect([...call.outcomes.keys()].sort((a, b) => a - b)).toEqual(times(100, (index) => index));
    expect(countLeads(core.path, key.owner.studioId)).toBe(100);
  });
});

// @proves exchange-5 bounds-21
describe('long pages', () => {
  test('forty are returned whole, in messages within the limit of gRPC clients', async () => {
    // JSON writes a control character as six bytes.
    const [displayName, note] = ['\u0001'.repeat(160), '\u0001'.repeat(2000)];
    const leads = await send(...times(100, () => createItem(aCreation({ displayName, note }))));
    const expected = leads.map(({ answer }) => jsonOf<{ lead: PublicLead }>(answer).lead).reverse();
    expect(new Set(expected.map((lead) => lead.displayName + lead.note))).toEqual(new Set([displayName + note]));
    const call = openExchange(caller);

    call.send(times(40, () => listItem({ pageSize: 100 })));
    call.end();

    await expect(call.ended).resolves.toBeUndefined();
    const bodies = times(40, (index) => call.outcomes.get(index)?.answer?.body ?? Buffer.alloc(0));
    const page = { leads: expected.toSorted((a, b) => (a.id < b.id ? 1 : -1)), nextCursor: null };
    expect(JSON.parse(`${bodies[0]}`)).toEqual(page);
    expect(new Set(bodies.map((body) => body.toString('base64'))).size).toBe(1);
    expectFilledToTheBound(call);
  });

  // @proves exchange-6 bounds-39
  test.each(['proto', 'json'] as const)(
    'are not read for a caller that does not read its results, and all arrive once it does, by %s',
    async (format) => {
      const own = await startTestCore({ CORE_METRICS_ADDRESS: '127.0.0.1:0' });
      const client = grpcCaller(`127.0.0.1:${own.port}`);
      const reader = await createKey(client);
      await exchange(client, [times(100, () => createItem(aCreation({ note: 'x'.repeat(1000) }), reader))]);
      const unread = openUnreadCall(own.url, format);
      onTestFinished(async () => {
        unread.session.destroy();
        client.close();
        await own.stop();
      });
      const secretSha256 = format === 'json' ? reader.secretSha256.toString('base64') : reader.secretSha256;
      const items = times(4, () => ({ secretSha256, listLeads: { pageSize: 100 } }));
      const series = 'lead_intake_core_call_duration_seconds_count{operation="ListLeads",outcome="ok"}';
      const made = async () => (await scrape(own.metricsUrl)).get(series) ?? 0;

      const sent = unread.send(times(60, () => ({ items })));
      await expect.poll(made).toBeGreaterThanOrEqual(MAX_LEADS_OPEN / 100);
      for (const _ of times(300, () => 0)) await client.call('DirectoryService/ListLeadSources', reader.owner);
      // The maximum, one more message, and what the network buffers.
      expect(await made()).toBeLessThan(120);

      const results = await unread.results();
      await sent;
      expect(results.map(({ index }) => index).sort((a, b) => a - b)).toEqual(times(240, (index) => index));
      expect(new Set(results.map(({ body }) => body)).size).toBe(1);
      expect(await made()).toBe(240);
    },
  );

  /** Expects that no message grew after it was full, and that every client can read them. */
  function expectFilledToTheBound({ messages, outcomes }: ReturnType<typeof openExchange>): void {
    for (const indexes of messages) {
      const sizes = indexes.map((index) => outcomes.get(index)?.answer?.body?.length ?? 0);
      const sum = sizes.reduce((total, size) => total + size, 0);
      expect(sum - (sizes.at(-1) ?? 0)).toBeLessThan(FULL_BYTES);
      expect(sum).toBeLessThan(MAX_MESSAGE_BYTES / 2);
      expect(indexes.length).toBeLessThanOrEqual(100);
    }
  }
});

test('a message that cannot be written ends the call with the reason, and nothing else', async () => {
  const token = new CoreToken({ CORE_TOKEN: new Secret(CORE_TOKEN), coreTokenFile: undefined });
  const noFiles = new TlsCredentials({ ca: undefined, cert: undefined, key: undefined });
  const coreUrl = `http://127.0.0.1:${core.port}`;
  const { sessions } = connectToCore({ CORE_URL: coreUrl }, noFiles, token);
  onTestFinished(() => sessions.abort());
  const messages = async function* () {
    const authenticate = { case: 'authenticate', value: {} } as const;
    yield { items: [{ secretSha256: key.secretSha256, request: authenticate }] };
    // A field of another type, as only a fault of ours would have it.
    yield { items: [{ secretSha256: 'a text' as never, request: authenticate }] };
  };
  const received: number[] = [];
  const reading = (async () => {
    const call = exchangeOver(coreUrl, sessions, token)(messages(), new AbortController().signal);
    for await (const { results } of call) received.push(results.length);
  })();
  await expect(reading).rejects.toThrow(/secret_sha256/);
});
