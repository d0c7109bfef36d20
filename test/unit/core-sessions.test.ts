import { once } from 'node:events';
import {
  type ClientHttp2Session,
  createSecureServer,
  createServer,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { CoreSessions } from '../../common/core-connection.ts';
import { anAuthority } from '../tools/certificates.ts';
import { startProxy } from '../tools/tcp-proxy.ts';

// @proves exchange-10 connect-3
test('a call made while the core closes its idle connection uses another connection', async () => {
  const { server, connections } = await aCore();
  const sessions = new CoreSessions(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => sessions.abort());
  const first = await call(sessions);

  const received = once(first, 'goaway');
  connections[0]?.goaway(0);
  await received;
  const second = await call(sessions);

  expect(second === first).toBe(false);
  // The session emits its error when its socket closes. Without a listener that would end the process.
  expect(first.listenerCount('error')).toBeGreaterThan(0);
});

test('a core may send a megabyte before the caller has read any of it', async () => {
  const { server, connections } = await aCore();
  const sessions = new CoreSessions(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => sessions.abort());

  await call(sessions);

  await expect.poll(() => connections[0]?.remoteSettings.initialWindowSize).toBe(1024 * 1024);
  await expect.poll(() => connections[0]?.state.remoteWindowSize).toBeGreaterThan(1_000_000);
});

// @proves connect-4
test('a call made while the core is suspended reaches it after it resumes, or fails', async () => {
  const authority = await anAuthority('core-authority');
  const { key, cert } = await authority.issue('localhost', 'server');
  const server = createSecureServer({ key, cert })
    .on('stream', (stream: ServerHttp2Stream) => {
      stream.on('error', () => {}).respond({ ':status': 200 });
      stream.write('begun');
    })
    .on('session', (session) => onTestFinished(() => session.destroy()))
    .listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const proxy = await startProxy('127.0.0.1', (server.address() as AddressInfo).port);
  onTestFinished(() => proxy.stop());
  const pings = { pingIntervalMs: 300, pingTimeoutMs: 400 };
  const sessions = new CoreSessions(`https://localhost:${proxy.port}`, pings, { ca: authority.cert }, 2000);
  onTestFinished(() => sessions.abort());
  const begin = () =>
    sessions.request('POST', '/', {}, {}).then(
      (stream) => stream.on('error', () => {}).resume(),
      () => undefined,
    );
  const long = await begin();
  const ended = new Promise<unknown>((resolve) => long?.on('close', () => resolve(begin())));

  await sleep(200);
  proxy.silence();
  await sleep(150);
  // By now the connection has been silent long enough for a ping, and the long call is still open.
  const meanwhile = begin();
  await sleep(1500);
  proxy.heal();

  const over = Promise.all([ended, meanwhile]).then(() => 'over');
  expect(await Promise.race([over, sleep(6000, 'waiting')])).toBe('over');
  expect(await begin()).toBeDefined();
});

// @proves connect-4
test('a call that gets no connection in time fails', async () => {
  const silent = createTcpServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  onTestFinished(() => void silent.close());
  const { port } = silent.address() as AddressInfo;
  const sessions = new CoreSessions(`https://localhost:${port}`, {}, {}, 200);
  onTestFinished(() => sessions.abort());

  const message = sessions.request('POST', '/', {}, {}).catch(({ message }) => message);
  expect(await Promise.race([message, sleep(4000, 'pending')])).toContain('no connection within 200 ms');
});

async function aCore(): Promise<{ server: Http2Server; connections: readonly ServerHttp2Session[] }> {
  const connections: ServerHttp2Session[] = [];
  const server = createServer()
    .on('session', (session) => connections.push(session))
    .on('stream', (stream: ServerHttp2Stream) => {
      stream.respond({ ':status': 200 });
      stream.end();
    })
    .listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const session of connections) session.destroy();
    server.close();
  });
  return { server, connections };
}

/** Makes a call and returns its connection. */
async function call(sessions: CoreSessions): Promise<ClientHttp2Session> {
  const stream = await sessions.request('GET', '/', {}, {});
  const session = stream.session as ClientHttp2Session;
  await once(stream.resume(), 'close');
  return session;
}
