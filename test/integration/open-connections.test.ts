import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type OnReadOpts, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  ADDRESS_SHARE_DIVISOR,
  ClientConnections,
  MAX_CONNECTIONS,
  MAX_UNREAD_BYTES,
  MAX_UNREAD_BYTES_PER_KEY,
  MIN_READ_BYTES,
} from '../../gateway/port/connections.ts';
import { times } from '../support/builders.ts';
import { lines } from '../support/raw-http.ts';
import { describeIf, hasCommand } from '../tools/servers.ts';

/** More than the socket buffers of both ends hold for a peer that does not read; bytes. */
const ANSWER_BYTES = 6 * 1024 * 1024;

/** A tenth of the product's timeouts. Tests of other bounds have no read timeout. */
const TIMEOUTS = { readTimeoutMs: 3000, checkIntervalMs: 100 };
const NO_READ_TIMEOUT = { ...TIMEOUTS, readTimeoutMs: 600_000 };

/** The longest that something may take on a busy machine. */
const PATIENCE = { timeout: 100_000 };

/** The speed of a slow caller; bytes per millisecond. Socket buffers drain only in steps of some hundred KB. */
const SLOW_BYTES_PER_MS = 1000;

const servers: Server[] = [];
const callers: Socket[] = [];
afterAll(() => {
  for (const caller of callers) caller.destroy();
  for (const server of servers) server.close();
});

/** Starts a server of long responses, each for the key in its path; `/` has no key. */
async function aServer(answerBytes = ANSWER_BYTES, { isText = false, timeouts = NO_READ_TIMEOUT } = {}) {
  // Longer than any test takes.
  const server = createServer({ keepAliveTimeout: 600_000 });
  const connections = new ClientConnections(pino({ level: 'silent' }), timeouts);
  connections.watch(server);
  // Each character of this text takes three bytes.
  const answer = isText ? '\u20ac'.repeat(answerBytes / 3) : Buffer.alloc(answerBytes);
  const sockets = new Map<string, Socket>();
  server.on('request', ({ url = '/', socket, headers }, response) => {
    sockets.set(String(headers['x-name']), socket);
    connections.recordResponse(socket, answer.length, url.slice(1) || undefined);
    response.end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.push(server);
  const { port } = server.address() as AddressInfo;
  let named = 0;
  return {
    server,
    port,
    /** The server's sockets, by the name in the request. */
    sockets,
    /** Requests a response for a key without reading it. Returns both ends of the connection. */
    async ask(
      path: string,
      options: { readonly onread?: OnReadOpts; readonly localAddress?: string } = {},
    ): Promise<{ readonly caller: Socket; readonly socket: Socket }> {
      const name = `${named++}`;
      const caller = connect({ port, host: '127.0.0.1', ...options });
      caller.on('error', () => {});
      callers.push(caller);
      caller.pause().write(lines(`GET ${path} HTTP/1.1`, 'Host: a', `X-Name: ${name}`, ''));
      const socket = await vi.waitUntil(() => sockets.get(name), PATIENCE);
      return { caller, socket };
    },
  };
}

/** Makes a server see other addresses of its connections, by their order. */
function connectionsFrom(server: Server, findAddress: (index: number) => string): void {
  let index = 0;
  server.prependListener('connection', (socket) =>
    Object.defineProperty(socket, 'remoteAddress', { value: findAddress(index++) }),
  );
}

/** The first address is in another /64 network than the others, which all differ. */
const ofTwoNetworks = (index: number) => (index === 0 ? '2001:db8:0:2::1' : `2001:db8:0:1::${index}`);

/** Returns a different local address for each index. */
const findLocalAddress = (index: number) => `127.0.0.${2 + (index % (2 * ADDRESS_SHARE_DIVISOR))}`;

const unreadBytes = (sockets: readonly Socket[]) =>
  sockets.reduce((sum, { destroyed, writableLength }) => sum + (destroyed ? 0 : writableLength), 0);

/** Checks that no more connections are closed than the bound requires. */
async function expectBounded(sockets: readonly Socket[], maxBytes: number): Promise<void> {
  await expect.poll(() => unreadBytes(sockets)).toBeLessThanOrEqual(maxBytes);
  await sleep(5 * TIMEOUTS.checkIntervalMs);
  expect(sockets.filter(({ destroyed }) => destroyed).length).toBeLessThanOrEqual(4);
}

/** Checks that connections are closed, but not before the timeout. */
async function expectClosedInTime(sockets: readonly Socket[], begun: number): Promise<void> {
  const closed = () => sockets.map(({ destroyed }) => destroyed);
  await expect.poll(closed).toEqual(sockets.map(() => true));
  expect(performance.now() - begun).toBeGreaterThanOrEqual(TIMEOUTS.readTimeoutMs);
}

// @proves hostile-2 fastify-4
describe('a slow reader', () => {
  // @proves bounds-1 bounds-11
  test('the connection of a reader that reads nothing is closed after the timeout', async () => {
    const { ask } = await aServer(ANSWER_BYTES, { timeouts: TIMEOUTS });
    const begun = performance.now();
    const requests = [await ask('/'), await ask('/key')];
    await expectClosedInTime(
      requests.map(({ socket }) => socket),
      begun,
    );
  });

  test('a connection that reads slowly but steadily is served to the end', async () => {
    const { ask } = await aServer(2 * ANSWER_BYTES, { timeouts: TIMEOUTS });
    const { caller, socket } = await ask('/');
    let received = 0;
    caller.on('data', (chunk) => {
      received += chunk.length;
      caller.pause();
    });
    // Longer than the read timeout.
    const begun = performance.now();
    while (performance.now() - begun < 1.5 * TIMEOUTS.readTimeoutMs) {
      if (received < (performance.now() - begun) * SLOW_BYTES_PER_MS) caller.resume();
      await sleep(10);
    }
    expect(socket.destroyed).toBe(false);
    // The server still has data to send.
    expect(socket.writableLength).toBeGreaterThan(0);
    caller.on('data', () => caller.resume()).resume();
    await expect.poll(() => received).toBeGreaterThan(2 * ANSWER_BYTES);
  });
});

describeIf(hasCommand('python3'), 'a reader of small pieces', 'install python3', () => {
  /** Reads up to `bytes` bytes ten times a second, with a small buffer and Ethernet segments, which Node cannot set. */
  const reads = (port: number, bytes: number) => `
import socket, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
s.connect(('127.0.0.1', ${port}))
s.sendall(b'GET / HTTP/1.1\\r\\nHost: a\\r\\nX-Name: ${bytes}\\r\\n\\r\\n')
while s.recv(${bytes}): time.sleep(0.1)
`;

  // @proves bounds-11
  test('a connection that reads below the minimum rate is closed, and one above it stays open', async () => {
    const { port, sockets } = await aServer(500_000, { timeouts: TIMEOUTS });
    const begun = performance.now();
    const [tooSlow, fastEnough] = [MIN_READ_BYTES / 2, 4 * MIN_READ_BYTES].map((inTime) => {
      const bytes = Math.round((inTime * 100) / TIMEOUTS.readTimeoutMs);
      const python = spawn('python3', ['-c', reads(port, bytes)], { stdio: 'ignore' });
      onTestFinished(() => {
        python.kill();
      });
      return () => sockets.get(`${bytes}`);
    });
    await vi.waitUntil(() => tooSlow?.() && fastEnough?.(), PATIENCE);
    await expect.poll(() => tooSlow?.()?.destroyed).toBe(true);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(TIMEOUTS.readTimeoutMs);
    await sleep(2.2 * TIMEOUTS.readTimeoutMs - (performance.now() - begun));
    expect(fastEnough?.()?.destroyed).toBe(false);
  });
});

// @proves hostile-2
describe('unread responses have a limit', () => {
  // @proves bounds-13
  test('too many unread responses to one key close its oldest connection', async () => {
    const { ask } = await aServer();
    const [first, other, ...more] = [await ask('/key'), await ask('/other'), await ask('/key'), await ask('/key')];
    await expect.poll(() => first?.socket.destroyed).toBe(true);
    await sleep(5 * TIMEOUTS.checkIntervalMs);
    expect(unreadBytes(more.map(({ socket }) => socket))).toBeLessThanOrEqual(MAX_UNREAD_BYTES_PER_KEY);
    expect(more.some(({ socket }) => !socket.destroyed)).toBe(true);
    expect(other?.socket.destroyed).toBe(false);
  });

  // @proves node-12 bounds-13
  test('unread text to one key counts by its bytes, not by its characters', async () => {
    // Two responses exceed the bound by their bytes, whatever the socket buffers hold, but not by their characters.
    const { ask } = await aServer(9 * 1024 * 1024, { isText: true });
    const [first, second] = [await ask('/key'), await ask('/key')];
    await expect.poll(() => first.socket.destroyed).toBe(true);
    expect(second.socket.destroyed).toBe(false);
  });

  // @proves bounds-14
  test('too many unread responses to all keys close the oldest connections', async () => {
    const { ask } = await aServer();
    const count = Math.ceil(MAX_UNREAD_BYTES / ANSWER_BYTES) + 3;
    const sockets: Socket[] = [];
    for (const index of times(count, (each) => each)) {
      sockets.push((await ask(`/${index}`, { localAddress: findLocalAddress(index) })).socket);
    }
    await expectBounded(sockets, MAX_UNREAD_BYTES);
  });

  // @proves bounds-15
  test.each([
    ['one address', undefined],
    ['one network of IPv6', ofTwoNetworks],
  ])('too many unread responses to %s close only its own oldest connections', async (_, addressOf) => {
    const readPath = (index: number) => `/${index}`;
    const { server, ask } = await aServer();
    if (addressOf) connectionsFrom(server, addressOf);
    const most = MAX_UNREAD_BYTES / ADDRESS_SHARE_DIVISOR;
    const { socket: other } = await ask(readPath(0), { localAddress: findLocalAddress(0) });
    const sockets: Socket[] = [];
    for (const index of times(Math.ceil(most / ANSWER_BYTES) + 3, (each) => each)) {
      sockets.push((await ask(readPath(index + 1))).socket);
    }
    await expectBounded(sockets, most);
    expect(sockets.at(-1)?.destroyed).toBe(false);
    expect(other.destroyed).toBe(false);
  });
});

// @proves bounds-1 bounds-3
test('connections are limited, and idle ones are closed for others when all are taken', async () => {
  const { server, ask } = await aServer(1);
  expect(server.maxConnections).toBe(MAX_CONNECTIONS);
  // A number that every machine allows.
  server.maxConnections = 20;
  const idle = await Promise.all(times(20, (index) => ask('/', { localAddress: findLocalAddress(index) })));
  const refused = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(refused.on('error', () => {}).resume(), 'close');

  await expect.poll(() => idle.every(({ socket }) => socket.destroyed)).toBe(true);
  const { socket } = await ask('/');
  expect(socket.destroyed).toBe(false);
});

// @proves bounds-2
test('one address cannot have all connections, and its closed connections are free again', async () => {
  const { server, ask } = await aServer(1);
  server.maxConnections = 20;
  const { port } = server.address() as AddressInfo;
  /** Returns whether a new connection is closed, and its request gets no response. */
  const isRefused = (localAddress?: string) => {
    const caller = connect({ port, host: '127.0.0.1', ...(localAddress && { localAddress }) }).on('error', () => {});
    callers.push(caller);
    caller.write(lines('GET / HTTP/1.1', 'Host: a', ''));
    return new Promise<boolean>((resolve) =>
      caller.once('data', () => resolve(false)).once('close', () => resolve(true)),
    );
  };
  const ofOne = await Promise.all(times(20 / ADDRESS_SHARE_DIVISOR, () => ask('/')));
  expect(await Promise.all(times(20, () => isRefused()))).not.toContain(false);
  expect(await isRefused(findLocalAddress(0))).toBe(false);

  ofOne[0]?.caller.destroy();
  await expect.poll(() => ofOne[0]?.socket.destroyed).toBe(true);
  expect(await isRefused()).toBe(false);
  expect(await isRefused()).toBe(true);
  expect(ofOne.slice(1).some(({ socket }) => socket.destroyed)).toBe(false);
});

// @proves bounds-2
test('all addresses of an IPv6 network share its connections, and another network has its own', async () => {
  const { server, port } = await aServer(1);
  server.maxConnections = 20;
  const most = 20 / ADDRESS_SHARE_DIVISOR;
  connectionsFrom(server, (index) => ofTwoNetworks(index === most + 1 ? 0 : index + 1));
  const aConnection = () => {
    const caller = connect({ port, host: '127.0.0.1' }).on('error', () => {});
    callers.push(caller);
    return caller;
  };
  const ofNetwork = times(most, aConnection);
  await Promise.all(ofNetwork.map((each) => once(each, 'connect')));
  /** Returns what is received for a request on a new connection. */
  const received = async () => {
    const caller = aConnection();
    caller.write(lines('GET / HTTP/1.1', 'Host: a', 'Connection: close', ''));
    return Buffer.concat(await Array.fromAsync(caller).catch(() => [])).toString();
  };
  expect(await received()).toBe('');
  expect(await received()).toContain('200 OK');
  expect(ofNetwork.some(({ destroyed }) => destroyed)).toBe(false);
});
