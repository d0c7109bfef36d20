import { once } from 'node:events';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRegistry, fromJson, type JsonObject, toJson } from '@bufbuild/protobuf';
import { createClient, type Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { BadRequestSchema, ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import {
  ExchangeRequestSchema,
  ExchangeResponseSchema,
  ExchangeService,
} from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { newId } from '../../src/domain/new-id.ts';
import { times } from '../support/builders.ts';
import { allOutcomes, openExchange } from '../support/exchange-calls.ts';
import { aCreation, grpcCaller, startTestCore, type TestCore } from '../support/grpc.ts';
import { createKey, type KeyOfStudio } from '../support/grpc-studios.ts';
import { idTextOf } from '../support/raw-sqlite.ts';
import { temporaryFolder } from '../tools/processes.ts';
import { aSharedCore } from './shared-core.ts';
import { withToken } from './transports.ts';

const EXCHANGE = 'ExchangeService/Exchange';

const { core, caller } = aSharedCore();
let key: KeyOfStudio;

beforeEach(async () => {
  key = await createKey(caller);
});

/** A creation as an item, by default of the test's own studio; valid both as JSON and for gRPC clients. */
const requested = (overrides: object = {}, of = key) => ({
  secretSha256: of.secretSha256.toString('base64'),
  createLead: aCreation(overrides),
});

type Requested = ReturnType<typeof requested>;

/** A result as JSON, which omits empty fields. */
interface JsonResult {
  readonly index?: number;
  readonly leadId?: string;
  readonly error?: object;
}

const registry = createRegistry(ErrorInfoSchema, BadRequestSchema);

/** Sends messages with Connect's client; yields each message of results. */
async function* sendOver(
  transport: Transport,
  messages: AsyncIterable<readonly Requested[]>,
): AsyncGenerator<readonly JsonResult[]> {
  async function* requests() {
    for await (const items of messages) yield fromJson(ExchangeRequestSchema, { items } as unknown as JsonObject);
  }
  for await (const response of createClient(ExchangeService, transport).exchange(requests())) {
    const { results } = toJson(ExchangeResponseSchema, response, { registry }) as JsonObject;
    yield results as unknown as readonly JsonResult[];
  }
}

describe('many items in one call', () => {
  // @proves exchange-1
  test('fail alone when the store refuses their writes, and later ones are written', async () => {
    const lock = new DatabaseSync(core.path, { timeout: 100_000 });
    onTestFinished(() => lock.close());
    const call = openExchange(caller);
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

// @proves exchange-6
describe('a core that stops', () => {
  test('has sent the results of all items that it processed, and written nothing else', async () => {
    const { other, own } = await anotherCore();
    const database = new DatabaseSync(other.path, { timeout: 100_000 });
    onTestFinished(() => database.close());

    const sent = await createUntilItEnds(other.url, own, 400, () => other.stop());

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
        keys.push(...items.map(({ createLead }) => createLead.idempotencyKey));
        yield items;
      }
    }
    for await (const results of sendOver(transport, messages())) {
      for (const result of results) {
        const { index = 0 } = result;
        expect([result.error, leadIds.has(index)]).toEqual([undefined, false]);
        leadIds.set(index, result.leadId);
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

// @proves connect-2
describe('a caller without the token', () => {
  test.each(['LeadIntakeService/CreateLead', EXCHANGE])('is refused by %s before the body is read', async (rpc) => {
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

// @proves exchange-6
describe('a core that stops', () => {
  // @proves connect-12
  test('ends an open call without an error, before it has items', async () => {
    const { other, client } = await anotherCore();
    const call = openExchange(client);
    // One call is served on this connection, so the one before it has begun.
    await createKey(client);

    await expectPromptStop(other);

    await call.ended;
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
