import { once } from 'node:events';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { newId } from '../../src/domain/new-id.ts';
import { times } from '../support/builders.ts';
import { BULK_METHODS, type Created, type CreationResult, type RequestedCreation } from '../support/bulk-creations.ts';
import {
  aCreation,
  CORE_TOKEN,
  type Creation,
  grpcCaller,
  refusalOf,
  startTestCore,
  type TestCore,
} from '../support/grpc.ts';
import { countLeads, createKey, type KeyOfStudio } from '../support/grpc-studios.ts';
import { allOutcomes, openItems } from '../support/item-calls.ts';
import { addressOf, run, temporaryFolder } from '../support/processes.ts';
import { idTextOf } from '../support/raw-sqlite.ts';
import { startProxy } from '../support/tcp-proxy.ts';
import { openUnreadCall } from '../support/unread-call.ts';
import { aSharedCore } from './shared-core.ts';
import { withToken } from './transports.ts';

/** The maximum number of items in a call whose results are not yet sent. */
const MAX_PENDING_LEADS = 1000;

/** Long enough that the network buffers few leads, and short enough that a call still reaches MAX_PENDING_LEADS. */
const LONG_NOTE = '長'.repeat(1000);

/** The methods whose calls last until the client ends them. */
const LASTING = [
  ...BULK_METHODS.map(({ rpc }) => rpc),
  'LeadIntakeService/BatchGetLeads',
  'LeadIntakeService/BatchListLeads',
  'ApiKeyService/BatchAuthenticateApiKeys',
];

const { core, caller } = aSharedCore();
let key: KeyOfStudio;

beforeEach(async () => {
  key = await createKey(caller);
});

/** A creation, by default in the test's own studio. */
const requested = (overrides: object = {}, of = key): RequestedCreation => ({ of, creation: aCreation(overrides) });

/** Makes the creation in a single call. */
const create = (creation: object, of = key) =>
  caller.call<Created>('LeadIntakeService/CreateLead', { studioId: of.owner.studioId, ...creation });

describe.each(BULK_METHODS)('over $rpc', (way) => {
  /** Opens a call. */
  function open(on = caller) {
    const call = openItems<CreationResult & { index: number }, Created>(on, way.rpc, way.answerOf);
    return { ...call, send: (items: readonly RequestedCreation[]) => call.send(way.messageOf(items)) };
  }

  /** Sends messages over one call; returns the outcome of each item. */
  async function sendAll(messages: readonly (readonly RequestedCreation[])[], on = caller) {
    const call = open(on);
    for (const items of messages) call.send(items);
    return allOutcomes(call, messages.flat().length);
  }

  describe('many items in one call', () => {
    test('in many messages get the result of their own request', async () => {
      let count = 0;
      const messages = [1, 100, 37, 64, 2, 100, 99, 1, 1, 55].map((length) =>
        times(length, () => requested({ displayName: `Lead ${count}`, note: `No. ${count++}` })),
      );

      const outcomes = await sendAll(messages);
      const again = await sendAll([...messages].reverse());

      const numberOf = (lead: Created['lead'] | undefined) => Number(lead?.displayName.split(' ')[1]);
      const byOrder = again.sort(({ answer: a }, { answer: b }) => numberOf(a?.lead) - numberOf(b?.lead));
      for (const [index, { answer }] of outcomes.entries()) {
        expect(answer).toMatchObject({ replayed: false, lead: { displayName: `Lead ${index}`, note: `No. ${index}` } });
        expect(byOrder[index]).toEqual({ answer: { ...answer, replayed: true } });
      }
      expect(outcomes).toHaveLength(count);
    });

    test('that are a hundred equal creations create one lead', async () => {
      const same = requested();

      const outcomes = await sendAll([times(100, () => same)]);

      expect(outcomes.filter(({ answer }) => answer?.replayed === false)).toHaveLength(1);
      expect(outcomes.filter(({ answer }) => answer?.replayed === true)).toHaveLength(99);
      expect(new Set(outcomes.map(({ answer }) => answer?.lead.id)).size).toBe(1);
    });

    test('get their results while the call is open, and calls do not wait for each other', async () => {
      const [one, other] = [open(), open()];
      for (const round of times(5, (each) => each)) {
        for (const call of [one, other]) {
          call.send([requested({ note: `${round}` })]);
          expect((await call.outcome(round)).answer?.lead.note).toBe(`${round}`);
        }
      }

      for (const call of [one, other]) expect(await allOutcomes(call, 5)).toHaveLength(5);
    });

    test('may be zero: the call ends without results', async () => {
      expect(await sendAll([])).toEqual([]);
    });

    test('fail alone when the store refuses their writes, and later ones are written', async () => {
      const lock = new DatabaseSync(core.path, { timeout: 100_000 });
      onTestFinished(() => lock.close());
      const call = open();
      const [written, unwritten] = [requested(), requested()];
      call.send([written]);
      expect((await call.outcome(0)).answer).toMatchObject({ replayed: false });

      lock.exec('BEGIN IMMEDIATE');
      call.send([requested({ note: '' }), unwritten, requested({ sourceId: newId() }), requested()]);
      for (const [index, refusal] of [
        { reason: 'INVALID_REQUEST', fields: ['note'] },
        { code: 'UNAVAILABLE' },
        { reason: 'SOURCE_INVALID' },
        { code: 'UNAVAILABLE' },
      ].entries()) {
        expect((await call.outcome(1 + index)).refusal).toMatchObject(refusal);
      }
      expect((await call.outcome(2)).refusal).not.toHaveProperty('reason');
      lock.exec('ROLLBACK');

      call.send([unwritten, written]);
      expect((await call.outcome(5)).answer).toMatchObject({ replayed: false });
      expect((await call.outcome(6)).answer).toMatchObject({ replayed: true });
      await allOutcomes(call, 7);
    });
  });

  describe('the size of a message', () => {
    test('above a megabyte is refused, and the connection stays usable', async () => {
      const call = open();
      call.send([requested()]);
      await call.outcome(0);

      call.send(times(100, () => requested({ note: 'x'.repeat(11_000) })));

      expect(await refusalOf(call.ended)).toMatchObject({ reason: 'INVALID_REQUEST' });
      expect(await create(aCreation())).toMatchObject({ replayed: false });
    });

    test('of a single call is still bounded by 64 KiB', async () => {
      const note = 'x'.repeat(64 * 1024);

      expect(await sendAll([[requested({ note })]])).toMatchObject([
        { refusal: { reason: 'INVALID_REQUEST', fields: ['note'] } },
      ]);
      expect(await refusalOf(create(aCreation({ note })))).toMatchObject({ reason: 'INVALID_REQUEST' });
    });
  });

  describe('a caller that does not read its results', () => {
    test('is held back alone, and gets all results once it reads them', async () => {
      const { studioId } = key.owner;
      const unread = openUnreadCall<CreationResult>(core.url, way.rpc);
      onTestFinished(() => unread.session.destroy());
      const messages = times(60, () => times(100, () => requested({ note: LONG_NOTE })));
      const sent = unread.send(messages.map(way.messageOf));

      await expect.poll(() => countLeads(core.path, studioId)).toBeGreaterThanOrEqual(MAX_PENDING_LEADS);
      const other = await createKey(caller);
      for (const _ of times(300, () => 0)) await create(aCreation(), other);
      // The bound, one message, and what the network buffers.
      expect(countLeads(core.path, studioId)).toBeLessThan(1.5 * MAX_PENDING_LEADS);

      const results = await unread.results();
      await sent;
      expect(results.map(({ index }) => index ?? 0).sort((a, b) => a - b)).toEqual(times(6000, (index) => index));
      expect(results.every((result) => way.answerOf(result)?.lead.note === LONG_NOTE)).toBe(true);
      expect(countLeads(core.path, studioId)).toBe(6000);
    });
  });

  describe('a caller that disconnects during a call', () => {
    test('has its leads at most once, can repeat them, and does not delay a stop', async () => {
      const { other, client, own } = await anotherCore();
      const { breaking, disconnect } = await aBreakableCaller(other);
      const messages = times(30, () => times(100, () => requested({}, own)));
      const call = open(breaking);
      for (const message of messages) call.send(message);
      await call.outcome(0);
      disconnect();
      expect(await refusalOf(call.ended)).toMatchObject({ code: 'UNAVAILABLE' });

      const outcomes = await sendAll(messages, client);

      const ids = outcomes.map(({ answer }) => answer?.lead.id);
      expect(new Set(ids).size).toBe(3000);
      for (const [index, { answer }] of call.outcomes) expect(answer?.lead.id).toBe(ids[index]);
      expect(countLeads(other.path, own.owner.studioId)).toBe(3000);
      await expectPromptStop(other);
    });
  });

  describe('a core that stops', () => {
    test('ends a call without an error after the results of its items', async () => {
      const { other, client, own } = await anotherCore();
      const call = open(client);
      call.send([requested({}, own)]);
      await call.outcome(0);

      await expectPromptStop(other);

      await call.ended;
    });

    test.each(times(5, (round) => round))(
      'has sent the results of all items that it processed, and written nothing else (round %i)',
      async (round) => {
        const { other, own } = await anotherCore();
        const database = new DatabaseSync(other.path, { timeout: 100_000 });
        onTestFinished(() => database.close());

        const sent = await createUntilItEnds(other.url, own, 200 * (round + 1), () => other.stop());

        expectWrittenIfAnswered(sent, database);
      },
    );

    test('does so as a process on SIGTERM', async () => {
      const path = join(temporaryFolder(), 'leads.db');
      const running = run('src/main.ts', { env: { DATABASE_URL: `sqlite:${path}`, CORE_TOKEN } });
      const url = await addressOf(running);
      const client = grpcCaller(new URL(url).host);
      onTestFinished(() => client.close());

      const sent = await createUntilItEnds(url, await createKey(client), 500, async () => {
        running.child.kill('SIGTERM');
        expect(await running.ended()).toBe(0);
      });

      const database = new DatabaseSync(path, { timeout: 100_000 });
      onTestFinished(() => database.close());
      expectWrittenIfAnswered(sent, database);
    });

    /** The idempotency key of each creation that was sent, and the id of its lead if there was a result. */
    type Sent = readonly (readonly [key: string, leadId: string | undefined])[];

    /**
     * Sends creations until the call ends, as fast as the core reads them. It does not use the gRPC client, which may treat the
     * end of a call as an error while it is sending.
     *
     * @param stop is called when enough results have arrived
     */
    async function createUntilItEnds(
      url: string,
      own: KeyOfStudio,
      after: number,
      stop: () => Promise<void>,
    ): Promise<Sent> {
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
          const items = times(1 + (keys.length % 100), () => requested({}, own));
          keys.push(...items.map(({ creation }) => creation.idempotencyKey));
          yield way.messageOf(items);
        }
      }
      for await (const results of way.send(transport, messages())) {
        for (const result of results) {
          const { index = 0 } = result;
          expect([result.error, leadIds.has(index)]).toEqual([undefined, false]);
          leadIds.set(index, way.answerOf(result)?.lead.id);
        }
        if (leadIds.size >= after) stopped ??= stop();
      }
      isOver = true;
      await stopped;
      // Otherwise the call did not end while creations were sent.
      expect(leadIds.size).toBeLessThan(keys.length);
      return keys.map((key, index) => [key, leadIds.get(index)] as const);
    }

    function expectWrittenIfAnswered(sent: Sent, database: DatabaseSync): void {
      const rows = database
        .prepare(`SELECT ${idTextOf('idempotency_key')} AS key, ${idTextOf('id')} AS id FROM leads`)
        .all();
      const written = new Map(rows.map(({ key, id }) => [key, id]));
      expect(sent.map(([key]) => [key, written.get(key)])).toEqual(sent);
      expect(written.size).toBe(sent.filter(([, leadId]) => leadId !== undefined).length);
    }
  });

  describe('clients of other protocols', () => {
    test.each<[string, (options: { baseUrl: string; httpVersion: '2' }) => Transport]>([
      ['Connect', (options) => createConnectTransport({ ...options, interceptors: [withToken] })],
      [
        'Connect with binary messages',
        (options) => createConnectTransport({ ...options, useBinaryFormat: true, interceptors: [withToken] }),
      ],
      ["Connect's gRPC", (options) => createGrpcTransport({ ...options, interceptors: [withToken] })],
    ])('%s: each item gets the result of a single call', async (_, transport) => {
      const first = requested();
      const another = (overrides: Partial<Creation> = {}): RequestedCreation => ({
        of: key,
        creation: { ...first.creation, idempotencyKey: newId(), ...overrides },
      });
      const results: CreationResult[] = [];
      async function* messages() {
        yield way.messageOf([first]);
        while (results.length < 1) await sleep(1);
        yield way.messageOf([first, another({ note: '' }), another()]);
      }

      for await (const message of way.send(transport({ baseUrl: core.url, httpVersion: '2' }), messages())) {
        results.push(...message);
      }

      const { lead } = await create(first.creation);
      const byIndex = results.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0));
      expect(byIndex.map((result) => way.answerOf(result) ?? result.error)).toMatchObject([
        { lead: { id: lead.id }, replayed: false },
        { lead: { id: lead.id }, replayed: true },
        {
          code: 3,
          details: [{ reason: 'INVALID_REQUEST', domain: 'leadintake' }, { fieldViolations: [{ field: 'note' }] }],
        },
        { code: 6, details: [{ reason: 'LEAD_ALREADY_OPEN', domain: 'leadintake', metadata: { leadId: lead.id } }] },
      ]);
    });
  });
});

describe('a caller without the token', () => {
  const UNAUTHENTICATED = { code: 'UNAUTHENTICATED', reason: 'CALLER_UNAUTHENTICATED' };

  test.each(LASTING)('is refused by %s before it has sent anything', async (rpc) => {
    for (const authorization of [undefined, 'Bearer wrong', CORE_TOKEN]) {
      const call = openItems(caller, rpc, () => undefined, { authorization });

      expect(await refusalOf(call.ended)).toMatchObject(UNAUTHENTICATED);
    }
  });

  test.each(['LeadIntakeService/CreateLead', ...LASTING])('is refused by %s before the body is read', async (rpc) => {
    const session = connect(core.url);
    onTestFinished(() => session.destroy());
    const stream = session.request({
      ':method': 'POST',
      ':path': `/leadintake.v1.${rpc}`,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    // The prefix of a message that is too large, and nothing of the message.
    stream.write(Buffer.of(0, 0xff, 0xff, 0xff, 0xff));

    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];

    const trailers =
      'grpc-status' in headers ? headers : ((await once(stream.resume(), 'trailers'))[0] as typeof headers);
    expect(trailers['grpc-status']).toBe('16');
  });
});

describe('a core that stops', () => {
  test('ends open calls of every streaming method without an error, before they have items', async () => {
    const { other, client } = await anotherCore();
    const calls = LASTING.map((rpc) => openItems(client, rpc, () => undefined));
    // One call is served on this connection, so those before it have begun.
    await createKey(client);

    await expectPromptStop(other);

    for (const call of calls) await call.ended;
  });

  test('does not wait for a caller that keeps its end of the connection open', async () => {
    const { other } = await anotherCore();
    const socket = connectSocket({ host: '127.0.0.1', port: other.port, allowHalfOpen: true });
    onTestFinished(() => {
      socket.destroy();
    });
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

/** A separate core, with a client and a key of a studio. */
async function anotherCore() {
  const path = join(temporaryFolder(), 'leads.db');
  const other = { ...(await startTestCore({ DATABASE_URL: `sqlite:${path}` })), path };
  const client = grpcCaller(`127.0.0.1:${other.port}`);
  onTestFinished(async () => {
    client.close();
    await other.stop();
  });
  return { other, client, own: await createKey(client) };
}

/** A caller whose connection the test can break. */
async function aBreakableCaller({ port }: TestCore) {
  const proxy = await startProxy('127.0.0.1', port);
  const breaking = grpcCaller(`127.0.0.1:${proxy.port}`);
  onTestFinished(async () => {
    breaking.close();
    await proxy.stop();
  });
  return { breaking, disconnect: () => proxy.refuse() };
}

/** Stops a core whose timeout for open connections never comes: it must wait for no peer. */
async function expectPromptStop(of: TestCore): Promise<void> {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  try {
    const stopped = of.stop().then(() => 'stopped');
    expect(await Promise.race([stopped, sleep(60_000, 'still waits')])).toBe('stopped');
  } finally {
    vi.useRealTimers();
  }
}
