import { once } from 'node:events';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromBinary } from '@bufbuild/protobuf';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { CoreToken, connectToCore } from '../../common/core-connection.ts';
import { readEnvelopes } from '../../common/envelopes.ts';
import type { PublicLead } from '../../common/rules/public-api.ts';
import { Secret } from '../../common/secret.ts';
import { TlsCredentials } from '../../common/tls-credentials.ts';
import { exchangeOver } from '../../gateway/core/exchange-calls.ts';
import { ExchangeResponseSchema, type ExchangeResult } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { newId } from '../../src/domain/new-id.ts';
import { framed } from '../security/http2-wire.ts';
import { times } from '../support/builders.ts';
import { allOutcomes, exchange, type Outcome, openExchange, toJson } from '../support/exchange-calls.ts';
import {
  aCreation,
  CORE_TOKEN,
  findRefusal,
  grpcCaller,
  type PackedStatus,
  refusalIn,
  requestBytes,
  startTestCore,
  type TestCore,
} from '../support/grpc.ts';
import { countLeads, createKey, type KeyOfStudio, putSource, revokeKey } from '../support/grpc-studios.ts';
import { scrape } from '../support/metrics.ts';
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

/** Returns one item of each kind. */
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

/** Converts a lead of the CRM API to its public form. */
function publicForm({ id, displayName, sourceId, note, stage, createTime, updateTime }: WireLead): PublicLead {
  return {
    id,
    displayName,
    stage: stage.replace('LEAD_STAGE_', '').toLowerCase() as PublicLead['stage'],
    sourceId: sourceId ?? null,
    note: note ?? null,
    createdAt: toTime(createTime),
    updatedAt: toTime(updateTime),
  };
}

const toTime = (time: WireTime) => new Date(millis(time)).toISOString();

/** Each of these is the single call that corresponds to an item. */
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

/** Returns the outcome of an item with its body parsed. */
function parsed({ answer, refusal }: Outcome) {
  if (!answer) return { refusal };
  const { body, bearer, leadId, replayed } = answer;
  return body ? { json: toJson(answer), leadId, replayed } : { bearer, leadId, replayed };
}

/** Sends items in one message; returns their outcomes. */
const send = (...items: readonly object[]) => exchange(caller, [items]);

// @proves exchange-1
describe('each item gets one result, that of a single call', () => {
  /** Returns items, each with the outcome of the corresponding single call. */
  async function itemsWithResults(): Promise<readonly (readonly [item: object, expected: object])[]> {
    const other = await createKey(caller);
    const sourceId = await putSource(caller, key.owner.studioId);
    const [mine, theirs] = [aCreation({ sourceId, note: 'mine' }), aCreation()];
    const { lead } = await createAlone(mine);
    const { lead: elsewhere } = await createAlone(theirs, other);
    for (const note of ['1', '2', '3']) await createAlone(aCreation({ note }));
    const ofRead = { leadId: '', replayed: false };
    const aPage = ({ leads, nextPageToken }: WirePage) => ({
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
    const refusalTo = async (call: Promise<unknown>) => ({ refusal: await findRefusal(call) });
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
      [listItem(), aPage(await listAlone({}))],
      [listItem({ pageSize: 3 }), aPage(first)],
      [listItem(second), aPage(await listAlone(second))],
      [listItem({}, other), aPage(await listAlone({}, other))],
      [listItem(second, other), await refusalTo(listAlone(second, other))],
      ...(await Promise.all(pages.map(async (each) => [listItem(each), await refusalTo(listAlone(each))] as const))),
    ];
  }

  test('each item of a message gets the result of the corresponding single call', async () => {
    const pairs = await itemsWithResults();
    const outcomes = await send(...pairs.map(([item]) => item));
    expect(outcomes.map(parsed)).toEqual(pairs.map(([, expected]) => expected));
    expect(countLeads(core.path, key.owner.studioId)).toBe(4);
  });
});

describe('a key', () => {
  // @proves exchange-4
  test.each([
    ['API_KEY_SCOPE_LEADS_READ', ['createLead']],
    ['API_KEY_SCOPE_LEADS_CREATE', ['getLead', 'listLeads']],
  ])(
    'a key with only %s is refused all other items, and nothing is written',
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
        // A refusal because of the key reveals nothing about the item.
        if (isForbidden) expect(refusal).not.toHaveProperty('fields');
      }
      expect(outcomes[0]?.answer?.bearer?.scopes).toEqual([scope]);
      expect(countLeads(core.path, key.owner.studioId)).toBe(forbidden.includes('createLead') ? 1 : 2);
    },
  );

  // @proves exchange-4
  test('a key accesses only its own studio, whatever the other items', { tags: ['1.own-studio', '5.2'] }, async () => {
    const other = await createKey(caller);
    const contact = { email: `${newId()}@example.org` };
    const creation = aCreation({ contact });

    // The same idempotency key and contact in two studios create two leads.
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
    const LEAD_NOT_FOUND = { refusal: await findRefusal(getAlone(newId())) };
    const [own, elsewhere] = ids.map((id) => ({ lead: { id } }));
    expect(read.map(({ answer, refusal }) => (answer ? toJson(answer) : { refusal }))).toMatchObject(
      [
        [own, LEAD_NOT_FOUND, { leads: [{ id: ids[0] }] }],
        [LEAD_NOT_FOUND, elsewhere, { leads: [{ id: ids[1] }] }],
        [own, LEAD_NOT_FOUND, { leads: [{ id: ids[0] }] }],
      ].flat(),
    );
  });

  // @proves exchange-4
  test('a key is checked again for each message', async () => {
    const call = openExchange(caller);
    const { lead } = await createAlone(aCreation());
    call.send(ofEachKind(key, lead.id));
    for (const index of [0, 1, 2, 3]) expect((await call.outcome(index)).refusal).toBeUndefined();
    await revokeKey(caller, key);
    call.send(ofEachKind(key, lead.id));
    for (const index of [4, 5, 6, 7]) expect((await call.outcome(index)).refusal?.reason).toBe('KEY_INVALID');
    await allOutcomes(call, 8);
    expect(countLeads(core.path, key.owner.studioId)).toBe(2);
  });
});

describe('an item', () => {
  test("an item of a later release's kind is refused, and its neighbours get their results", async () => {
    const known = requestBytes('ExchangeService/Exchange', { items: [createItem()] });
    // Field 15, of type bytes, which a later release may send; the item is field 1.
    const unknown = Buffer.concat([Buffer.from([0x1a, 32]), key.secretSha256, Buffer.from([0x7a, 3, 1, 2, 3])]);
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

// @proves bounds-39
describe('a message', () => {
  test('a list has each lead that was acknowledged before its message', { tags: ['4.3.newest-first'] }, async () => {
    const call = openExchange(caller);
    const expected: string[] = [];
    for (let index = 0; index < 40; index += 4) {
      call.send([createItem()]);
      expected.unshift((await call.outcome(index)).answer?.leadId ?? '');
      call.send([listItem(), listItem(), listItem({ pageSize: 1 })]);
      const pages = await Promise.all([1, 2, 3].map((offset) => call.outcome(index + offset)));
      const ids = pages.map(({ answer }) => toJson<WirePage>(answer).leads.map(({ id }) => id));
      expect(ids).toEqual([expected, expected, expected.slice(0, 1)]);
    }
    await allOutcomes(call, 40);
  });

  test.each([
    ['no items', 0],
    ['a hundred and one items', 101],
  ])('a message with %s fails the call, writes nothing, and leaves earlier results', async (_, count) => {
    const call = openExchange(caller);
    call.send(times(100, () => createItem()));
    call.send(times(count, () => createItem()));
    call.send([createItem()]);

    expect(await findRefusal(call.ended)).toMatchObject({
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
  test('a dozen long pages are returned whole, in messages within the limit of gRPC clients', async () => {
    // JSON writes a control character as six bytes.
    const [displayName, note] = ['\u0001'.repeat(160), '\u0001'.repeat(2000)];
    const leads = await send(...times(100, () => createItem(aCreation({ displayName, note }))));
    const expected = leads.map(({ answer }) => toJson<{ lead: PublicLead }>(answer).lead).reverse();
    expect(new Set(expected.map((lead) => lead.displayName + lead.note))).toEqual(new Set([displayName + note]));
    const call = openExchange(caller);

    call.send(times(12, () => listItem({ pageSize: 100 })));
    call.end();

    await expect(call.ended).resolves.toBeUndefined();
    const bodies = times(12, (index) => call.outcomes.get(index)?.answer?.body ?? Buffer.alloc(0));
    const page = { leads: expected.toSorted((a, b) => (a.id < b.id ? 1 : -1)), nextCursor: null };
    expect(JSON.parse(`${bodies[0]}`)).toEqual(page);
    expect(new Set(bodies.map((body) => body.toString('base64'))).size).toBe(1);
    expectFilledToTheBound(call);
  });

  // @proves exchange-6 bounds-228
  test('pages are not read while the caller reads no results, and all arrive once it does', async () => {
    const own = await startTestCore({ CORE_METRICS_ADDRESS: '127.0.0.1:0' });
    const client = grpcCaller(`127.0.0.1:${own.port}`);
    const reader = await createKey(client);
    await exchange(client, [times(100, () => createItem(aCreation({ note: 'x'.repeat(1000) }), reader))]);
    // Calls like a gateway, because the gRPC client always reads from the network.
    const session = connect(own.url);
    const stream = session.request({
      ':method': 'POST',
      ':path': '/leadintake.v1.ExchangeService/Exchange',
      'content-type': 'application/connect+proto',
      authorization: `Bearer ${CORE_TOKEN}`,
    });
    onTestFinished(async () => {
      session.destroy();
      client.close();
      await own.stop();
    });
    const items = times(4, () => listItem({ pageSize: 100 }, reader));
    const series = 'lead_intake_core_call_duration_seconds_count{operation="ListLeads",outcome="ok"}';
    const made = async () => (await scrape(own.metricsUrl)).get(series) ?? 0;

    const message = framed(requestBytes('ExchangeService/Exchange', { items }));
    for (const _ of times(60, () => 0)) stream.write(message);
    stream.end();
    await expect.poll(made).toBeGreaterThanOrEqual(MAX_LEADS_OPEN / 100);
    for (const _ of times(300, () => 0)) await client.call('DirectoryService/ListLeadSources', reader.owner);
    // The maximum, one more message, and what the network buffers.
    expect(await made()).toBeLessThan(120);

    const results: ExchangeResult[] = [];
    let isComplete = false;
    for await (const { flags, message } of readEnvelopes(stream, MAX_MESSAGE_BYTES)) {
      // The last message has the status of the call.
      if (flags === 2) isComplete = `${message}` === '{}';
      else results.push(...fromBinary(ExchangeResponseSchema, message).results);
    }
    expect(isComplete).toBe(true);
    expect(results.map(({ index }) => index).sort((a, b) => a - b)).toEqual(times(240, (index) => index));
    expect(new Set(results.map(({ outcome }) => Buffer.from(outcome.value as Uint8Array).toString())).size).toBe(1);
    expect(await made()).toBe(240);
  });

  /** Checks that no message grew after it was full, and that every client can read each. */
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

test('a message that cannot be encoded ends only its own call, with the reason', async () => {
  const token = new CoreToken({ CORE_TOKEN: new Secret(CORE_TOKEN), coreTokenFile: undefined });
  const noFiles = new TlsCredentials({ ca: undefined, cert: undefined, key: undefined });
  const coreUrl = `http://127.0.0.1:${core.port}`;
  const { sessions } = connectToCore({ CORE_URL: coreUrl }, noFiles, token);
  onTestFinished(() => sessions.abort());
  const messages = async function* () {
    const authenticate = { case: 'authenticate', value: {} } as const;
    yield { items: [{ secretSha256: key.secretSha256, request: authenticate }] };
    // A field of another type, which only our own fault can cause.
    yield { items: [{ secretSha256: 'a text' as never, request: authenticate }] };
  };
  const received: number[] = [];
  const reading = (async () => {
    const call = exchangeOver(coreUrl, sessions, token)(messages(), new AbortController().signal);
    for await (const { results } of call) received.push(results.length);
  })();
  await expect(reading).rejects.toThrow(/secret_sha256/);
});

// @proves exchange-1
test('items fail alone when the store refuses their writes, and later items are written', async () => {
  const lock = new DatabaseSync(core.path, { timeout: 100_000 });
  onTestFinished(() => lock.close());
  const call = openExchange(caller);
  const [written, unwritten] = [createItem(), createItem()];
  call.send([written]);
  expect((await call.outcome(0)).answer).toMatchObject({ replayed: false });

  lock.exec('BEGIN IMMEDIATE');
  call.send([createItem(aCreation({ note: '' })), unwritten, createItem(aCreation({ sourceId: newId() }))]);
  for (const [index, refusal] of [
    { reason: 'INVALID_REQUEST', fields: ['note'] },
    { code: 'UNAVAILABLE' },
    { reason: 'SOURCE_INVALID' },
  ].entries()) {
    expect((await call.outcome(1 + index)).refusal).toMatchObject(refusal);
  }
  expect((await call.outcome(2)).refusal).not.toHaveProperty('reason');
  lock.exec('ROLLBACK');

  call.send([unwritten, written]);
  expect((await call.outcome(4)).answer).toMatchObject({ replayed: false });
  expect((await call.outcome(5)).answer).toMatchObject({ replayed: true });
  await allOutcomes(call, 6);
});

// @proves connect-2
test.each(['LeadIntakeService/CreateLead', 'ExchangeService/Exchange'])(
  'a caller without the token is refused by %s before the body is read',
  async (rpc) => {
    const session = connect(core.url);
    onTestFinished(() => session.destroy());
    const head = { ':method': 'POST', ':path': `/leadintake.v1.${rpc}`, 'content-type': 'application/grpc' };
    const stream = session.request({ ...head, te: 'trailers' });
    // The prefix of a message that is too large, without the message.
    stream.write(Buffer.of(0, 0xff, 0xff, 0xff, 0xff));

    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];

    const trailers = 'grpc-status' in headers ? headers : (await once(stream.resume(), 'trailers'))[0];
    expect(trailers['grpc-status']).toBe('16');
  },
);

// @proves exchange-6
describe('a core that stops', () => {
  /** Stops a core whose timeout for open connections never fires, so it must not wait for any peer. */
  async function expectPromptStop(other: TestCore): Promise<void> {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const stopped = other.stop().then(() => 'stopped');
    expect(await Promise.race([stopped, sleep(60_000, 'still waits')])).toBe('stopped');
  }

  // @proves connect-12
  test('a stopping core ends an open call without an error, even before it has items', async () => {
    const other = await startTestCore();
    const client = grpcCaller(`127.0.0.1:${other.port}`);
    onTestFinished(() => client.close());
    const call = openExchange(client);
    // One call is served on this connection, so the one before it has begun.
    await createKey(client);

    await expectPromptStop(other);

    await call.ended;
  });

  test('a stopping core does not wait for a caller that keeps its end of the connection open', async () => {
    const other = await startTestCore();
    const socket = connectSocket({ host: '127.0.0.1', port: other.port, allowHalfOpen: true });
    onTestFinished(() => void socket.destroy());
    // The HTTP/2 preface, and settings that change nothing.
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    socket.write(Buffer.from('000000040000000000', 'hex'));
    await once(
      socket.on('error', () => {}),
      'data',
    );

    await other.stop();
  });
});
