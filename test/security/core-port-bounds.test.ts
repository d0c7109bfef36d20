import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { newId } from '../../src/domain/new-id.ts';
import { MAX_CALLS_PER_SECOND } from '../../src/port/connection.ts';
import {
  BACKPRESSURE_BYTES,
  MAX_AUTHENTICATED_CONNECTIONS,
  MAX_UNAUTHENTICATED_CONNECTIONS,
} from '../../src/port/connections.ts';
import { openStore } from '../../src/store/open-store.ts';
import { cpuSeconds, memoryMb } from '../crash/memory.ts';
import { aLead, aStudio as aStudioRecord, BY, keysFor, NOW, times } from '../support/builders.ts';
import {
  aCreateLeadRequest,
  CORE_TOKEN,
  type GrpcCaller,
  grpcCaller,
  requestBytes,
  startTestCore,
} from '../support/grpc.ts';
import { type RunningProcess, readAddress, sharedFolder, start } from '../tools/processes.ts';
import {
  aReset,
  callBlock,
  FLAG,
  FRAME,
  frame,
  framed,
  framesIn,
  grpcCall,
  headerBlock,
  NO_WINDOW,
  onStream,
  opening,
  talk,
  WIDE_WINDOW,
  wholeCall,
} from './http2-wire.ts';

const STUDIO = 'studio-1';
const LIST = '/leadintake.v1.LeadIntakeService/ListLeads';
const EXPORT = '/leadintake.v1.LeadIntakeService/ExportLeads';
const CHECK = '/grpc.health.v1.Health/Check';
const WATCH = '/grpc.health.v1.Health/Watch';
const WITH_TOKEN = { authorization: `Bearer ${CORE_TOKEN}` };

/** An empty message. */
const EMPTY = Buffer.alloc(5);

/** A request for the longest page that the leads allow. */
const PAGE = aMessage(LIST, { studioId: STUDIO, pageSize: 100 });

/** A studio with much data, and the message that requests all of it. */
const LARGE_STUDIO = 'studio-2';
const ALL_OF_LARGE_STUDIO = aMessage(EXPORT, { studioId: LARGE_STUDIO });

const aCall = (stream: number, block: Uint8Array, message: Uint8Array = EMPTY) => wholeCall(stream, block, message);

/** Encodes a request as a framed message of a stream. */
function aMessage(path: string, request: object): Buffer {
  return framed(requestBytes(path.replace('/leadintake.v1.', ''), request));
}

function sessionTo(url: string, options = {}): ClientHttp2Session {
  const session = connect(url, options);
  session.on('error', () => {});
  onTestFinished(() => session.destroy());
  return session;
}

async function aStudio(caller: GrpcCaller, leads: number): Promise<void> {
  await caller.call('DirectoryService/PutStudio', { studio: { id: STUDIO, status: 'STUDIO_STATUS_ACTIVE' } });
  for (const _ of times(leads, () => 0)) {
    await caller.call('LeadIntakeService/CreateLead', aCreateLeadRequest(STUDIO, { note: 'x'.repeat(2000) }));
  }
}

// @proves hostile-9
describe('a core in a separate process', () => {
  const folder = sharedFolder();
  let core: RunningProcess;
  let url: string;
  let port: number;
  let caller: GrpcCaller;

  /** Starts another core whose memory or processor time a test measures. */
  async function aFreshCore(): Promise<void> {
    caller?.close();
    await core?.kill();
    core = start('src/main.ts', { env: { CORE_TOKEN, DATABASE_URL: `sqlite:${join(folder(), `${newId()}.db`)}` } });
    url = await readAddress(core);
    port = Number(new URL(url).port);
    caller = grpcCaller(`127.0.0.1:${port}`);
    await aStudio(caller, 0);
  }
  beforeAll(aFreshCore);
  afterAll(async () => {
    caller?.close();
    await core?.kill();
  });

  /** Expects another client with the token to get a response on its own connection. */
  async function served(): Promise<void> {
    const other = sessionTo(url);
    expect(await onStream(other, grpcCall(LIST, WITH_TOKEN), PAGE)).toMatchObject({ grpcStatus: 0 });
  }

  // @proves node-14 bounds-50
  test('560 connections that open and reset 900 calls each, without a token, do not delay callers', async () => {
    const block = callBlock(LIST);
    const flood = Buffer.concat([
      opening(),
      ...times(900, (index) =>
        Buffer.concat([frame(FRAME.headers, FLAG.endHeaders, 2 * index + 1, block), aReset(2 * index + 1)]),
      ),
    ]);
    const before = cpuSeconds(core);
    // A connection that is closed before it is established counts as closed.
    const floods = await Promise.all(times(560, () => talk(port, flood).catch(() => undefined)));

    await served();
    await Promise.all(floods.map((each) => each?.closed));
    await served();
    // Without a bound, the core would work on them for more than half a minute.
    expect(cpuSeconds(core) - before).toBeLessThan(15);
  });

  // @proves bounds-47 bounds-50 bounds-59 bounds-60
  test('100 unauthenticated connections with a zero window use little memory, whatever they call', async () => {
    await aFreshCore();
    await served();
    const before = memoryMb(core);
    // Each of them is answered differently: see core-port-answers.test.ts.
    const connect = headerBlock({ ':method': 'CONNECT', ':authority': 'x' });
    for (const block of [callBlock(LIST), callBlock(WATCH), callBlock(LIST, { expect: 'x' }), connect]) {
      const calls = Buffer.concat([opening(NO_WINDOW), ...times(2000, (index) => aCall(2 * index + 1, block))]);
      await Promise.all(times(100, () => talk(port, calls)));
      await served();
    }
    // Growth levels off at about 300 MB; 240 connections took 1.4 GB without a bound.
    expect(memoryMb(core) - before).toBeLessThan(600);
  });

  // @proves node-13
  test('unread responses on 100 authenticated connections use bounded memory; slow readers stay', async () => {
    await aFreshCore();
    await aStudio(caller, 100);
    const before = memoryMb(core);
    const slow = slowPage(url);
    slow.catch(() => {});
    const block = callBlock(LIST, WITH_TOKEN);
    const wider = frame(FRAME.windowUpdate, FLAG.none, 0, Buffer.from('7fff0000', 'hex'));
    const calls = [opening(WIDE_WINDOW), wider, ...times(60, (index) => aCall(2 * index + 1, block, PAGE))];

    const hostile = await Promise.all(times(100, () => talk(port, ...calls)));
    for (const { socket } of hostile) socket.pause();

    // Together the calls request more than a gigabyte.
    for (const _ of times(8, () => 0)) await Promise.all([served(), sleep(1000)]);
    expect(memoryMb(core) - before).toBeLessThan(800);
    expect((await slow).length).toBeGreaterThan(200_000);
  });

  // @proves bounds-62
  test('some of many connections with an unread page are closed, but not a slow reader', async () => {
    await aStudio(caller, 100);
    const printed = core.output().length;
    const slow = slowPage(url);
    slow.catch(() => {});
    const page = aCall(1, callBlock(LIST, WITH_TOKEN), PAGE);

    // The pages total 88 MB.
    await Promise.all(times(400, () => talk(port, opening(NO_WINDOW), page)));

    await expect.poll(() => core.output().slice(printed)).toContain('"connection: too much unread data"');
    await served();
    expect((await slow).length).toBeGreaterThan(200_000);
  });

  test('a call without the token on an authenticated connection is refused and ends no other call', async () => {
    const session = sessionTo(url);
    const exchange = session.request(grpcCall('/leadintake.v1.ExchangeService/Exchange', WITH_TOKEN));
    const ended = vi.fn();
    exchange.on('close', ended).on('error', () => {});
    expect(await onStream(session, grpcCall(LIST, WITH_TOKEN), PAGE)).toMatchObject({ grpcStatus: 0 });

    for (const _ of times(20, () => 0)) {
      expect(await onStream(session, grpcCall(LIST), PAGE)).toMatchObject({ grpcStatus: 16 });
      expect(await onStream(session, grpcCall(CHECK), EMPTY)).toMatchObject({ grpcStatus: 0 });
    }
    expect(await onStream(session, grpcCall(LIST, WITH_TOKEN), PAGE)).toMatchObject({ grpcStatus: 0 });
    expect(ended).not.toHaveBeenCalled();
  });

  // @proves bounds-59
  test("health checks may go on at a probe's rate, but a far higher one closes the connection", async () => {
    const probe = sessionTo(url);
    for (const _ of times(2 * MAX_CALLS_PER_SECOND, () => 0)) {
      expect(await onStream(probe, grpcCall(CHECK), EMPTY)).toMatchObject({ grpcStatus: 0 });
      await sleep(1500 / MAX_CALLS_PER_SECOND);
    }
    const block = callBlock(CHECK);
    const { closed } = await talk(port, opening(), ...times(200, (index) => aCall(2 * index + 1, block)));
    expect(await Promise.race([closed.then(() => 'closed'), sleep(60_000, 'open')])).toBe('closed');
    expect(await onStream(probe, grpcCall(CHECK), EMPTY)).toMatchObject({ grpcStatus: 0 });
  });

  // @proves bounds-47
  test('silent connections are bounded and affect no authenticated caller or health watcher', async () => {
    const watcher = sessionTo(url);
    const watch = watcher.request(grpcCall(WATCH));
    watch.end(EMPTY);
    await once(watch, 'data');
    const gone = vi.fn();
    watcher.on('close', gone);

    const silent = await Promise.all(times(MAX_UNAUTHENTICATED_CONNECTIONS + 200, () => talk(port)));
    await served();

    const isOpen = ({ socket }: { socket: Socket }) => !socket.destroyed && socket.readyState === 'open';
    await expect.poll(() => silent.filter(isOpen).length).toBeLessThan(MAX_UNAUTHENTICATED_CONNECTIONS);
    expect(gone).not.toHaveBeenCalled();
    expect(await onStream(watcher, grpcCall(CHECK), EMPTY)).toMatchObject({ grpcStatus: 0 });
  });

  // @proves bounds-48
  test('64 new connections displace idle authenticated ones, but none in use', async () => {
    const extra = 64;
    const user = sessionTo(url);
    user.request(grpcCall('/leadintake.v1.ExchangeService/Exchange', WITH_TOKEN)).on('error', () => {});
    expect(await onStream(user, grpcCall(CHECK, WITH_TOKEN), EMPTY)).toMatchObject({ grpcStatus: 0 });
    const closed = vi.fn();
    user.on('close', closed);

    const idle: Awaited<ReturnType<typeof talk>>[] = [];
    while (idle.length < MAX_AUTHENTICATED_CONNECTIONS) {
      const more = await Promise.all(times(64, () => talk(port, opening(), aCall(1, callBlock(CHECK, WITH_TOKEN)))));
      const isAnswered = ({ frames }: (typeof more)[0]) =>
        frames().some(({ stream, flags }) => stream === 1 && flags & FLAG.endStream);
      await expect.poll(() => more.filter(isAnswered).length).toBe(64);
      idle.push(...more);
    }
    const others = times(extra, () => sessionTo(url));
    await Promise.all(others.map((other) => once(other, 'connect')));
    const served = await Promise.all(others.map((other) => onStream(other, grpcCall(LIST, WITH_TOKEN), PAGE)));
    expect(served.map(({ grpcStatus }) => grpcStatus)).toEqual(times(extra, () => 0));

    const isOpen = ({ socket }: { socket: Socket }) => !socket.destroyed && socket.readyState === 'open';
    // The user, the caller of `beforeEach` and the new connections are also open.
    await expect.poll(() => idle.filter(isOpen).length).toBeLessThan(MAX_AUTHENTICATED_CONNECTIONS - extra);
    expect(idle.filter(isOpen).length).toBeGreaterThan(MAX_AUTHENTICATED_CONNECTIONS - extra - 20);
    expect(closed).not.toHaveBeenCalled();
    expect(await onStream(user, grpcCall(CHECK), EMPTY)).toMatchObject({ grpcStatus: 0 });
  });
});

/** Reads a page of leads with a small window, and pauses. */
async function slowPage(url: string): Promise<Buffer> {
  const session = sessionTo(url, { settings: { initialWindowSize: 16_384 } });
  const stream = session.request(grpcCall(LIST, WITH_TOKEN));
  stream.end(PAGE);
  const chunks: Buffer[] = [];
  for await (const chunk of stream) {
    chunks.push(chunk as Buffer);
    await sleep(200);
  }
  return Buffer.concat(chunks);
}

// @proves hostile-9
describe('over time,', () => {
  /** A core in this process; the test's timers trigger its checks of connections. */
  async function aCore() {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const core = await startTestCore();
    onTestFinished(() => core.stop());
    const caller = grpcCaller(`127.0.0.1:${core.port}`);
    onTestFinished(() => caller.close());
    await aStudio(caller, 10);
    /** Advances the timers by seconds, with time for responses in each. */
    const pass = async (seconds: number) => {
      for (const _ of times(seconds, () => 0)) {
        vi.advanceTimersByTime(1000);
        await sleep(5);
      }
    };
    return { core, caller, pass };
  }

  // @proves bounds-63
  test('an unread response is cancelled, but neither a read one nor a waiting call', async () => {
    const { core, pass } = await aCore();
    const deaf = await talk(core.port, opening(NO_WINDOW), aCall(1, callBlock(LIST, WITH_TOKEN), PAGE));
    answerPings(deaf);
    const session = sessionTo(core.url);
    const waiting = session.request(grpcCall('/leadintake.v1.ExchangeService/Exchange', WITH_TOKEN));
    const watch = session.request(grpcCall(WATCH));
    watch.end(EMPTY);
    const ended = vi.fn();
    for (const stream of [waiting, watch]) stream.on('close', ended).on('error', () => {});
    await once(watch, 'data');
    await expect.poll(() => deaf.frames().map(({ type }) => type)).toContain(FRAME.headers);

    await pass(20);
    expect(deaf.frames().map(({ type }) => type)).not.toContain(FRAME.reset);
    await pass(15);
    await expect.poll(() => deaf.frames().map(({ type }) => type)).toContain(FRAME.reset);
    expect(ended).not.toHaveBeenCalled();
    expect(await onStream(session, grpcCall(LIST, WITH_TOKEN), PAGE)).toMatchObject({ grpcStatus: 0 });
  });

  // @proves crashes-7 bounds-62
  test('a call waiting for others to be read is answered although the core stops', async () => {
    const { core, caller, pass } = await aCore();
    await aStudio(caller, 90);
    const session = sessionTo(core.url, { settings: { initialWindowSize: 0 } });
    const aPage = (answered: () => void) => {
      const stream = session.request(grpcCall(LIST, WITH_TOKEN));
      stream.on('response', answered).on('error', () => {});
      stream.end(PAGE);
      return stream;
    };
    const roundTrip = () => new Promise((resolve) => session.ping(resolve));
    const begun = vi.fn();
    // A page has 100 notes of 2000 characters. Pages that do not begin wait, too.
    const pages = times(120, () => aPage(begun));
    await expect.poll(() => pass(1).then(() => begun.mock.calls.length)).toBeGreaterThan(BACKPRESSURE_BYTES / 200_000);
    const answered = vi.fn();
    const last = aPage(answered);
    await roundTrip();
    await pass(1);
    await roundTrip();
    expect(answered).not.toHaveBeenCalled();

    const announced = once(session, 'goaway');
    const stopped = core.stop();
    await announced;
    session.settings({ initialWindowSize: 2 ** 31 - 1 });
    session.setLocalWindowSize(2 ** 31 - 1);
    const ended = vi.fn();
    const statuses = Promise.all([...pages, last].map(readStatus)).finally(ended);
    while (ended.mock.calls.length === 0) await pass(1);
    expect(await statuses).toEqual(times(121, () => 0));
    await stopped;
  });

  // @proves bounds-42
  test('a slowly read export continues although its buffer is full, but an unread one ends', async () => {
    const { core, pass } = await aCore();
    const store = await openStore(`sqlite:${core.path}`);
    // The messages are equal and so large that each begins only after the client has read the previous one.
    await store.putStudio(aStudioRecord({ id: LARGE_STUDIO }), BY);
    const leads = times(5000, () => aLead({ studioId: LARGE_STUDIO, createdAt: NOW, note: 'x'.repeat(2000) }));
    await Promise.all(leads.map((lead) => store.createLead(lead, keysFor(lead))));
    await store.close();
    const session = sessionTo(core.url, { settings: { initialWindowSize: 16_384 } });
    const [read, unread] = times(2, () => {
      const stream = session.request(grpcCall(EXPORT, WITH_TOKEN));
      stream.on('error', () => {}).end(ALL_OF_LARGE_STUDIO);
      return stream;
    }) as [ClientHttp2Stream, ClientHttp2Stream];
    await Promise.all([once(read, 'readable'), once(unread, 'readable')]);

    for (const _ of times(45, () => 0)) {
      await takeMessage(read);
      await pass(1);
    }

    expect(await readStatus(read)).toBe(0);
    expect(await readStatus(unread)).toBeUndefined();
  });

  // @proves bounds-64
  test('a connection that does not reply to pings is closed, but not one that does', async () => {
    const { core, pass } = await aCore();
    const lifeless = await talk(core.port, opening());
    const alive = await talk(core.port, opening());
    answerPings(alive);
    const closed = vi.fn();
    alive.closed.then(closed);

    await pass(90);

    await lifeless.closed;
    expect(closed).not.toHaveBeenCalled();
  });
});

/** Reads a call to its end and returns its status, or undefined if the stream was aborted. */
async function readStatus(stream: ClientHttp2Stream): Promise<number | undefined> {
  let status: number | undefined;
  stream.on('trailers', (trailers) => {
    status = Number(trailers['grpc-status']);
  });
  if (!stream.destroyed) await once(stream.resume(), 'close');
  return status;
}

/** Waits for the first of two events. */
async function either(stream: ClientHttp2Stream, ...names: readonly [string, string]): Promise<void> {
  const over = new AbortController();
  await Promise.race(names.map((name) => once(stream, name, over)));
  over.abort();
}

/** Reads exactly one message of a call. */
async function takeMessage(stream: ClientHttp2Stream): Promise<void> {
  const take = async (length: number): Promise<Buffer> => {
    const chunks: Buffer[] = [];
    for (let left = length; left > 0; ) {
      const chunk = stream.read(Math.min(left, stream.readableLength)) as Buffer | null;
      if (chunk) chunks.push(chunk);
      else if (stream.destroyed) throw new Error('the call was broken off');
      else await either(stream, 'readable', 'close');
      left -= chunk?.length ?? 0;
    }
    return Buffer.concat(chunks);
  };
  await take((await take(5)).readUInt32BE(1));
}

/** Acknowledges pings and ignores everything else. */
function answerPings({ socket, bytes }: Awaited<ReturnType<typeof talk>>): void {
  let answered = 0;
  socket.on('data', () => {
    const pings = framesIn(bytes()).filter(({ type }) => type === FRAME.ping);
    for (const { payload } of pings.slice(answered)) socket.write(frame(FRAME.ping, FLAG.ack, 0, payload));
    answered = pings.length;
  });
}
