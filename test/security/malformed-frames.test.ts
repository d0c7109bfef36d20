import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from 'node:http2';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { newId } from '../../src/domain/new-id.ts';
import { memoryMb } from '../crash/memory.ts';
import { times } from '../support/builders.ts';
import {
  aCreateLeadRequest,
  CONTRACT_RPCS,
  CORE_TOKEN,
  type GrpcCaller,
  grpcCaller,
  requestBytes,
} from '../support/grpc.ts';
import { type RunningProcess, readAddress, sharedFolder, start } from '../tools/processes.ts';
import {
  aReset,
  callBlock,
  FLAG,
  FRAME,
  frame,
  framed,
  headerBlock,
  NO_WINDOW,
  onStream,
  opening,
  PREFACE,
  type StreamOutcome,
  wholeCall,
  wire,
} from './http2-wire.ts';

/** The seed of the random requests; the same seed generates the same requests. */
const SEED = Number(process.env.HOSTILE_SEED ?? randomBytes(4).readInt32LE());

/** With this limit, a core whose memory callers can fill soon crashes. */
const LITTLE_MEMORY = '--max-old-space-size=128';

/** The maximum growth of a core's memory, in and outside of the heap, after an attack; MB. */
const MAX_GROWTH_MB = 250;

const folder = sharedFolder();
let core: RunningProcess;
let url: string;
let port: number;
let caller: GrpcCaller;
let studioId: string;
let session: ClientHttp2Session;

beforeAll(async () => {
  core = start('src/main.ts', {
    env: { CORE_TOKEN, DATABASE_URL: `sqlite:${join(folder(), 'leads.db')}`, NODE_OPTIONS: LITTLE_MEMORY },
  });
  url = await readAddress(core);
  port = Number(new URL(url).port);
  caller = grpcCaller(`127.0.0.1:${port}`);
});
afterAll(async () => {
  caller?.close();
  await core?.kill();
});

/** The length of the core's output when the test began. */
let outputLength: number;

/** Returns every later line that reports a fault or is not a log line. */
const faultsSince = (length: number) =>
  core
    .output()
    .slice(length)
    .split('\n')
    .filter((line) => line !== '' && !/^\{"level":[1-4]0,/.test(line));

beforeEach(async () => {
  // Starts at the beginning of a line, because the last one may be incomplete.
  outputLength = core.output().lastIndexOf('\n') + 1;
  studioId = `studio-${newId()}`;
  await caller.call('DirectoryService/PutStudio', { studio: { id: studioId, status: 'STUDIO_STATUS_ACTIVE' } });
  session = connect(url);
  session.on('error', () => {});
});
afterEach(async () => {
  session.destroy();
  // After any input, the process is alive, has logged no fault, and serves the next caller.
  expect([core.child.exitCode, core.child.signalCode]).toEqual([null, null]);
  expect(faultsSince(outputLength)).toEqual([]);
  await caller.call('LeadIntakeService/CreateLead', capture());
});

const capture = (overrides?: object) => aCreateLeadRequest(studioId, overrides);

const CREATE = 'LeadIntakeService/CreateLead';
const message = () => requestBytes(CREATE, capture());

/** Pads a message to a length with an unknown field; bytes. */
function filled(bytes: Uint8Array, length: number): Buffer {
  const rest = length - bytes.length - 5;
  // Field 1000, with a length in three bytes.
  const head = Buffer.of(0xc2, 0x3e, (rest & 0x7f) | 0x80, ((rest >> 7) & 0x7f) | 0x80, rest >> 14);
  return Buffer.concat([bytes, head, Buffer.alloc(rest)]);
}

/** gRPC's status for exceeding a limit. */
const INVALID_ARGUMENT = 3;

const toPath = (rpc: string) => `/leadintake.v1.${rpc}`;

/** The headers of a gRPC call; undefined removes one. */
function grpcHeaders(overrides: OutgoingHttpHeaders = {}): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {
    ':method': 'POST',
    ':path': toPath(CREATE),
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${CORE_TOKEN}`,
    ...overrides,
  };
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
}

async function leadCount(): Promise<number> {
  const { leads } = await caller.call<{ leads: unknown[] }>('LeadIntakeService/ListLeads', { studioId, pageSize: 100 });
  return leads.length;
}

/** The payload of a priority frame. */
const PRIORITY = Buffer.from('0000000010', 'hex');

/** Matches text that reveals internals of the service. */
const INTERNALS = /node_modules|file:\/\/|\.ts\b|at \w+ \(|sqlite|lik_/i;

/** Expects a call to be refused as its protocol provides, with text that is fit for callers. */
function expectRefused({ status, grpcStatus, text, resetCode }: StreamOutcome): void {
  const isRefused = resetCode !== 0 || (grpcStatus ?? 0) > 0 || (status ?? 0) >= 400 || /grpc-status: [1-9]/.test(text);
  expect({ isRefused, text }).toEqual({ isRefused: true, text: expect.not.stringMatching(INTERNALS) });
}

// @proves hostile-1
describe('a malformed message', () => {
  test.each<[what: string, bytes: () => Buffer, headers?: OutgoingHttpHeaders]>([
    ['a length above that of the message', () => framed(message(), { length: 1000 })],
    ['a length below that of the message', () => framed(message(), { length: 20 })],
    ['a length one byte above the maximum', () => framed(message(), { length: 64 * 1024 + 1 })],
    ['an empty message', () => framed(Buffer.alloc(0))],
    ['two messages in one call', () => Buffer.concat([framed(message()), framed(message())])],
    ['marked as compressed, without an encoding', () => framed(message(), { flag: 1 })],
    [
      'compressed, with bytes after it',
      () => framed(Buffer.concat([gzipSync(message()), Buffer.of(1, 2, 3)]), { flag: 1 }),
      { 'grpc-encoding': 'gzip' },
    ],
    ['compressed with an unknown encoding', () => framed(message(), { flag: 1 }), { 'grpc-encoding': 'snappy' }],
    ['JSON in a binary call', () => framed(Buffer.from('{}')), { 'content-type': 'application/grpc+proto' }],
    ['of a stream', () => framed(message()), { 'content-type': 'application/connect+proto' }],
    [
      'a length above that of the message, in gRPC-Web',
      () => framed(message(), { length: 999 }),
      { 'content-type': 'application/grpc-web' },
    ],
    ['a form', () => Buffer.from('a=b'), { 'content-type': 'application/x-www-form-urlencoded' }],
    ['with a deadline in ten digits', () => framed(message()), { 'grpc-timeout': '9999999999S' }],
    ['by GET', () => framed(message()), { ':method': 'GET' }],
    ['to an unknown path', () => framed(message()), { ':path': '/nowhere' }],
  ])('a malformed message is refused and writes nothing: %s', async (_, bytes, headers) => {
    expectRefused(await onStream(session, grpcHeaders(headers), bytes()));
    expect(await leadCount()).toBe(0);
  });

  test('a message that is truncated anywhere is refused and writes nothing', async () => {
    const whole = message();
    const outcomes = await Promise.all(
      times(whole.length, (length) => onStream(session, grpcHeaders(), framed(whole.subarray(0, length)))),
    );
    for (const outcome of outcomes) expectRefused(outcome);
    expect(await leadCount()).toBe(0);
  });
});

// @proves node-11
test('a compressed message may have padding after the zero byte that ends it', async () => {
  for (const rest of [Buffer.of(0), Buffer.of(0, 0, 0), Buffer.of(0, 1, 2)]) {
    const padded = framed(Buffer.concat([gzipSync(message()), rest]), { flag: 1 });
    expect((await onStream(session, grpcHeaders({ 'grpc-encoding': 'gzip' }), padded)).grpcStatus).toBe(0);
  }
  expect(await leadCount()).toBe(3);
});

// @proves hostile-1 connect-1
test('a message of the maximum length is accepted, and a longer one is refused for its length', async () => {
  const longest = 64 * 1024;
  expect((await onStream(session, grpcHeaders(), framed(filled(message(), longest)))).grpcStatus).toBe(0);
  const outcome = await onStream(session, grpcHeaders(), framed(filled(message(), longest + 1)));
  expectRefused(outcome);
  expect(outcome.grpcStatus).toBe(INVALID_ARGUMENT);
  expect(await leadCount()).toBe(1);
});

// @proves connect-6
describe('a malformed message in JSON', () => {
  const asJson = { 'content-type': 'application/json', te: undefined };
  const deep = 20_000;

  test.each<[what: string, text: string, rpc?: string]>([
    ['a list', '[]'],
    ['nested and never closed', '['.repeat(60_000)],
    ['deep nesting in an unknown property', `{"x":${'['.repeat(deep)}${']'.repeat(deep)}}`],
    ['a number outside its type', '{"studioId":"a","pageSize":1e99}', 'LeadIntakeService/ListLeads'],
    ['a time that does not exist', '{"expireTime":"2026-02-30T99:99:99Z"}', 'ApiKeyService/CreateApiKey'],
  ])('a malformed message in JSON is refused and writes nothing: %s', async (_, text, rpc = CREATE) => {
    const headers = grpcHeaders({ ...asJson, ':path': toPath(rpc) });
    expectRefused(await onStream(session, headers, Buffer.from(text)));
    expect(await leadCount()).toBe(0);
  });
});

test('an RPC that writes cannot be called by GET', async () => {
  const query = `encoding=proto&base64=1&message=${message().toString('base64url')}`;
  const headers = grpcHeaders({ ':method': 'GET', ':path': `${toPath(CREATE)}?${query}`, 'content-type': undefined });
  expectRefused(await onStream(session, headers, Buffer.alloc(0)));
  expect(await leadCount()).toBe(0);
});

/** Returns a request that is valid or only just invalid, with each field of the contract that the RPC has. */
function aRequestTo(rpc: string): object {
  const [memberId, apiKeyId, leadId, id, sourceId] = ['member-1', newId(), newId(), newId(), newId()];
  const expireTime = { seconds: 2_000_000_000, nanos: 0 };
  const lead = { studioId, leadId, id: leadId, note: 'x', revision: 1, reason: 'HTTP_500', retryTime: expireTime };
  const secretSha256 = randomBytes(32);
  const { studioId: _, ...createLead } = capture({ sourceId, note: 'x' });
  const items = [{ authenticate: {} }, { createLead }, { getLead: { leadId } }, { listLeads: { pageSize: 3 } }, {}];
  return {
    ...{
      ...createLead,
      studioId,
      memberId,
      apiKeyId,
      leadId,
      secretSha256,
      expireTime,
      lead,
      name: 'x',
      scopes: [1, 2],
    },
    ...{ stage: 5, view: 2, max: 3, start: 1, pageSize: 3, pageToken: 'A'.repeat(44), heartbeat: { seconds: 60 } },
    items: items.map((item) => ({ ...item, requestId: 'x', secretSha256 })),
    updateMask: { paths: ['note'] },
    studio: { id: studioId, status: 1, regionCode: 'DE' },
    member: { studioId, id: memberId, role: 3 },
    leadSource: { studioId, id, name: 'x', enabled: true },
    consumer: rpc === 'ConsumerService/CreateConsumer' ? { name: 'relay', studioIds: [studioId] } : 'relay',
    leads: [lead],
    leadIds: [leadId],
    acknowledgements: [lead],
  };
}

// @proves hostile-1
test('every RPC refuses random bytes and changed messages, and reveals no internals', async () => {
  const message = fc.constantFrom(...CONTRACT_RPCS).map((rpc) => ({ rpc, bytes: requestBytes(rpc, aRequestTo(rpc)) }));
  const changed = fc
    .tuple(message, fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 4 }), fc.nat(4))
    .map(([{ rpc, bytes }, at, by, gone]) => {
      const from = at % (bytes.length + 1);
      return { rpc, bytes: Buffer.concat([bytes.subarray(0, from), by, bytes.subarray(from + gone)]) };
    });
  const random = fc.record({ rpc: fc.constantFrom(...CONTRACT_RPCS), bytes: fc.uint8Array({ maxLength: 200 }) });
  const calls = fc.sample(fc.oneof(random, changed), { seed: SEED, numRuns: 600 });
  const codes = new Set<number | undefined>();
  for (let from = 0; from < calls.length; from += 100) {
    const outcomes = await Promise.all(
      calls.slice(from, from + 100).map(({ rpc, bytes }) => {
        // Some calls last until the caller ends them.
        const headers = grpcHeaders({ ':path': toPath(rpc), 'grpc-timeout': '1S' });
        return onStream(session, headers, framed(bytes));
      }),
    );
    for (const { status, grpcStatus, text } of outcomes) {
      codes.add(grpcStatus);
      expect({ status, text, SEED }).toEqual({ status: 200, text: expect.not.stringMatching(INTERNALS), SEED });
    }
  }
  // Never unknown, internal or unavailable, which clients retry.
  expect(codes).toContain(INVALID_ARGUMENT);
  for (const code of [2, 13, 14]) expect(codes).not.toContain(code);
});

// @proves hostile-1
describe('a connection with invalid HTTP/2', () => {
  /** Sends bytes to the core, and waits until it closes the connection. */
  async function expectDisconnected(...parts: readonly Uint8Array[]): Promise<void> {
    const socket = await wire(port);
    socket.resume();
    socket.write(Buffer.concat(parts));
    await once(socket, 'close');
  }

  const open = opening();
  const head = callBlock(toPath(CREATE));
  const ALL = FLAG.endHeaders | FLAG.endStream;

  test.each<[what: string, ...parts: Uint8Array[]]>([
    ['HTTP/1.1', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
    ['a first frame that is not settings', PREFACE, frame(FRAME.ping, FLAG.none, 0, Buffer.alloc(8))],
    ['a frame that is too large', open, frame(FRAME.data, FLAG.none, 1, Buffer.alloc(20_000))],
    [
      'a window update beyond the maximum',
      open,
      ...times(2, () => frame(FRAME.windowUpdate, FLAG.none, 0, Buffer.from('7fffffff', 'hex'))),
    ],
    [
      'headers interrupted by another frame',
      open,
      frame(FRAME.headers, FLAG.none, 1, head),
      frame(FRAME.ping, FLAG.none, 0, Buffer.alloc(8)),
    ],
    ['a header index outside the table', open, frame(FRAME.headers, ALL, 1, Buffer.of(0xff, 0x7f))],
    [
      'more padding than frame',
      open,
      frame(FRAME.headers, ALL | FLAG.padded, 1, Buffer.concat([Buffer.of(255), head])),
    ],
  ])('invalid HTTP/2 ends its own connection only: %s', async (_, ...parts) => {
    // A core that waits for more bytes gets them; otherwise it has already closed the connection.
    await expectDisconnected(...parts, frame(FRAME.goAway, FLAG.none, 0, Buffer.alloc(8)), randomBytes(100_000));
  });

  test('an attempt at TLS ends its own connection only', async () => {
    const secure = connectTls({ host: '127.0.0.1', port });
    const [error] = await once(secure, 'error');
    expect(String(error)).toMatch(/ssl|tls|socket|ECONNRESET/i);
  });

  test('random frames end their own connection only', async () => {
    const frames = fc.array(
      fc
        .tuple(fc.integer({ min: 0, max: 12 }), fc.nat(255), fc.nat(9), fc.uint8Array({ maxLength: 60 }))
        .map(([type, flags, stream, payload]) => frame(type, flags, stream, payload)),
      { minLength: 1, maxLength: 20 },
    );
    const conversations = fc.sample(frames, { seed: SEED, numRuns: 200 });
    // Ends each conversation, which could otherwise stop within a frame whose rest the core may rightly wait for.
    const tooLong = Buffer.alloc(9, 0xff);
    for (let from = 0; from < conversations.length; from += 50) {
      await Promise.all(
        conversations.slice(from, from + 50).map((parts) => expectDisconnected(open, ...parts, tooLong)),
      );
    }
  });
});

// @proves hostile-1
describe('a flood of frames', () => {
  let before: number;
  beforeEach(() => {
    before = memoryMb(core);
  });

  const head = (extra?: Readonly<Record<string, string>>) => callBlock(toPath(CREATE), extra);

  /** Writes a flood as fast as the core reads it, until its end or a closed connection, while others call. */
  async function flood(pieces: Iterable<Uint8Array>, { reads = true } = {}): Promise<Socket> {
    const socket = await wire(port);
    onTestFinished(() => void socket.destroy());
    if (reads) socket.resume();
    let over = false;
    const others = (async () => {
      while (!over) await caller.call('LeadIntakeService/ListLeads', { studioId });
    })();
    others.catch(() => {});
    socket.write(opening());
    for (const piece of pieces) {
      if (socket.destroyed) break;
      // A core that has not read for 2 s bounds the flood by backpressure.
      if (!socket.write(piece)) await Promise.race([drained(socket), sleep(2000, undefined, { ref: false })]);
    }
    over = true;
    await others;
    expect(memoryMb(core) - before).toBeLessThan(MAX_GROWTH_MB);
    return socket;
  }

  const repeat = function* (count: number, piece: (index: number) => Uint8Array, together = 100): Generator<Buffer> {
    for (let from = 0; from < count; from += together) {
      yield Buffer.concat(times(Math.min(together, count - from), (index) => piece(from + index)));
    }
  };

  // @proves bounds-35
  test('the core withstands 10,000 streams that are opened and reset immediately', async () => {
    await flood(
      repeat(10_000, (index) =>
        Buffer.concat([frame(FRAME.headers, FLAG.endHeaders, 2 * index + 1, head()), aReset(2 * index + 1)]),
      ),
    );
    expect(await leadCount()).toBe(0);
  });

  test('the core withstands 10,000 complete creations that are reset immediately', async () => {
    const authorization = `Bearer ${CORE_TOKEN}`;
    await flood(
      repeat(10_000, (index) =>
        Buffer.concat([wholeCall(2 * index + 1, head({ authorization }), framed(message())), aReset(2 * index + 1)]),
      ),
    );
  });

  const nothing = Buffer.alloc(0);
  const opened = frame(FRAME.headers, FLAG.endHeaders, 1, head());
  const windowUpdate = frame(FRAME.windowUpdate, FLAG.none, 1, Buffer.from('00000001', 'hex'));
  const longHeaders = Buffer.concat(times(60, (index) => headerBlock({ [`x-${index}`]: 'x'.repeat(120) })));

  test.each<[what: string, first: Uint8Array, count: number, piece: (index: number) => Uint8Array]>([
    ['settings', nothing, 100_000, () => frame(FRAME.settings, FLAG.none, 0, Buffer.from('000300000064', 'hex'))],
    ['pings', nothing, 100_000, () => frame(FRAME.ping, FLAG.none, 0, randomBytes(8))],
    ['empty data frames', opened, 100_000, () => frame(FRAME.data, FLAG.none, 1)],
    ['window updates', opened, 100_000, () => windowUpdate],
    ['priorities', opened, 50_000, (index) => frame(FRAME.priority, FLAG.none, 2 * index + 3, PRIORITY)],
    [
      'pieces of endless headers',
      frame(FRAME.headers, FLAG.none, 1, head()),
      12_000,
      () => frame(FRAME.continuation, FLAG.none, 1, longHeaders),
    ],
  ])('the core withstands a flood of %s whose responses are not read', async (_, first, count, piece) => {
    await flood([first, ...repeat(count, piece)], { reads: false });
  });

  test('the core withstands 100 header blocks that decompress to a thousand times their size', async () => {
    // A long header is stored in the table once, and then referenced repeatedly by one byte.
    const name = Buffer.from('x-bomb');
    const entry = Buffer.concat([
      Buffer.of(0x40, name.length),
      name,
      Buffer.of(0x7f, 0xc1, 0x1e),
      Buffer.alloc(4000, 'x'),
    ]);
    await flood(
      repeat(100, (index) =>
        frame(
          FRAME.headers,
          FLAG.endHeaders | FLAG.endStream,
          2 * index + 1,
          Buffer.concat([head(), ...(index === 0 ? [entry] : []), Buffer.alloc(10_000, 0xbe)]),
        ),
      ),
    );
  });

  // @proves bounds-35
  test('the core withstands 10,000 responses that are never read', async () => {
    for (const _ of times(30, () => 0)) {
      await caller.call(CREATE, capture({ note: 'x'.repeat(2000) }));
    }
    const list = framed(requestBytes('LeadIntakeService/ListLeads', { studioId, pageSize: 100 }));
    const headers = head({ ':path': toPath('LeadIntakeService/ListLeads'), authorization: `Bearer ${CORE_TOKEN}` });
    await flood(
      [
        frame(FRAME.settings, FLAG.none, 0, NO_WINDOW),
        ...repeat(10_000, (index) => wholeCall(2 * index + 1, headers, list)),
      ],
      { reads: false },
    );
  });

  // The last test, because a core that does not survive it cannot serve others.
  // @proves bounds-35 bounds-36
  test('the core withstands 10,000 streams that never end', async () => {
    await flood(
      repeat(10_000, (index) =>
        Buffer.concat([
          frame(FRAME.headers, FLAG.endHeaders, 2 * index + 1, head()),
          frame(FRAME.data, FLAG.none, 2 * index + 1, Buffer.of(0, 0, 0)),
        ]),
      ),
    );
  });
});

/** Waits until a socket is writable again or closed. */
const drained = (socket: Socket) => new Promise((resolve) => socket.once('drain', resolve).once('close', resolve));
