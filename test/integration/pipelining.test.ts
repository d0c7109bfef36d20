import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { ClientConnections, MAX_WAITING_REQUESTS } from '../../gateway/port/connections.ts';
import { ProblemAnswers } from '../../gateway/port/problem-json.ts';
import { createHttpServer } from '../../gateway/port/server.ts';
import { times } from '../support/builders.ts';
import { lines } from '../support/raw-http.ts';

/** The size of a read of Node; bytes. */
const ONE_READ_BYTES = 64 * 1024;

/** Starts the gateway's HTTP server with a handler that records requests and responds only when the test allows it. */
async function aServer(arrivalMs?: number) {
  const handled: string[] = [];
  const sockets: Socket[] = [];
  const unanswered: ServerResponse[] = [];
  let isResponding = false;
  const connections = new ClientConnections(pino({ level: 'silent' }), arrivalMs === undefined ? {} : { arrivalMs });
  const handler = (request: IncomingMessage, response: ServerResponse) => {
    handled.push(request.url ?? '');
    if (isResponding) response.end('.');
    else unanswered.push(response);
  };
  const server = createHttpServer(connections, handler, handler);
  const answers = new ProblemAnswers('http://test', undefined);
  server.on(
    'clientError',
    answers.clientErrorHandler(() => new Map(), connections),
  );
  server.on('connection', (socket) => sockets.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    handled,
    /** The server's ends of the connections. */
    sockets,
    respond() {
      isResponding = true;
      for (const response of unanswered) response.end('.');
    },
    connect() {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => {});
      onTestFinished(() => {
        socket.destroy();
      });
      return socket;
    },
    /** Connects, sends a text and reads all responses. */
    send(text: string) {
      const socket = this.connect();
      let received = '';
      socket.on('data', (chunk) => {
        received += chunk;
      });
      socket.write(text);
      return { socket, count: (status: number) => received.split(`HTTP/1.1 ${status}`).length - 1 };
    },
  };
}

const aGet = (path: string) => lines(`GET ${path} HTTP/1.1`, 'Host: a', '');

// @proves hostile-2 node-9 node-10 bounds-9
test('a connection is not read while its requests wait, and reading resumes when none does', async () => {
  const server = await aServer();
  const paths = times(50_000, (index) => `/${index}`);
  const socket = server.connect().resume();
  socket.write(paths.map(aGet).join(''));

  await expect.poll(() => server.sockets[0]?.bytesRead).toBeGreaterThan(0);
  await sleep(500);
  expect(server.handled).toEqual(['/0']);
  expect(server.sockets[0]?.bytesRead).toBeLessThanOrEqual(2 * ONE_READ_BYTES);

  server.respond();
  await expect.poll(() => server.handled.length).toBe(paths.length);
  expect(server.handled).toEqual(paths);
});

// @proves bounds-4
test('a request on a connection that is held back does not time out', async () => {
  const arrivalMs = 3000;
  const server = await aServer(arrivalMs);
  // More than one read of requests.
  const complete = server.send(aGet('/').repeat(6000));
  const incomplete = server.send(`${aGet('/').repeat(1000)}GET /never`);
  await sleep(arrivalMs + 2000);
  server.respond();
  await expect.poll(() => incomplete.count(200)).toBe(1000);
  expect(incomplete.count(408)).toBe(0);

  await expect.poll(() => complete.count(200)).toBe(6000);
  await expect.poll(() => incomplete.socket.readableEnded).toBe(true);
  expect([complete.count(408), incomplete.count(408)]).toEqual([0, 1]);
  expect(complete.socket.readableEnded).toBe(false);
});

// @proves hostile-2 bounds-9
test('a connection full of requests does not delay other connections', async () => {
  const server = await aServer();
  server.respond();
  const [many, one] = [server.connect().resume(), server.connect().resume()];
  await Promise.all([once(many, 'connect'), once(one, 'connect')]);
  many.write(aGet('/many').repeat(1500));
  one.write(aGet('/one'));

  await expect.poll(() => server.handled.length).toBe(1501);
  expect(server.handled.indexOf('/one')).toBeLessThan(100);
});

// @proves bounds-9 bounds-10 bounds-12
test('a connection whose responses are not read is not read either', async () => {
  const server = await aServer();
  server.respond();
  const socket = server.connect().pause();
  socket.write(aGet('/').repeat(400_000));

  // Waits until the socket buffers of both ends are full.
  const counts = () => [server.sockets[0]?.bytesRead, server.handled.length];
  let [before, after]: unknown[][] = [[], counts()];
  while (before?.toString() !== after?.toString() || server.handled.length === 0) {
    await sleep(1000);
    [before, after] = [after, counts()];
  }
  expect(server.handled.length).toBeLessThan(400_000);
  expect(server.sockets[0]?.writableLength).toBeLessThan(2 * ONE_READ_BYTES);
  expect(socket.writableLength).toBeGreaterThan(0);
});

// @proves hostile-2 bounds-10
test('waiting requests are limited, and a connection that brings too many ends after its own', async () => {
  const server = await aServer();
  const OF_ONE = 1500;
  // A packet that fits into one read.
  const packet = times(OF_ONE, (index) => aGet(`/${index}`)).join('');
  expect(packet.length).toBeLessThan(ONE_READ_BYTES);
  const callers = times(Math.ceil(MAX_WAITING_REQUESTS / OF_ONE) + 2, () => server.send(packet));
  await expect.poll(() => server.sockets.filter(({ bytesRead }) => bytesRead > 0).length).toBe(callers.length);

  server.respond();
  const isServed = ({ socket, count }: (typeof callers)[number]) => socket.readableEnded || count(200) === OF_ONE;
  await expect.poll(() => callers.every(isServed)).toBe(true);
  expect(server.handled.length).toBeLessThanOrEqual(MAX_WAITING_REQUESTS + callers.length);
  expect(server.handled.length).toBeGreaterThanOrEqual(MAX_WAITING_REQUESTS);
  expect(callers.filter(({ count }) => count(200) < OF_ONE).length).toBeGreaterThanOrEqual(2);
  // Requests are accepted again afterwards.
  const later = server.connect();
  later.write(aGet('/later').repeat(2));
  await once(later, 'data');
});
