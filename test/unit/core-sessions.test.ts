import { once } from 'node:events';
import {
  type ClientHttp2Session,
  createServer,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { CoreSessions } from '../../gateway/core-sessions.ts';

test('a core that closes an idle connection as the next call comes has that over another one, and nobody dies of it', async () => {
  const { server, connections } = await aCore();
  const sessions = new CoreSessions(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => sessions.abort());
  const first = await call(sessions);

  const isTold = once(first, 'goaway');
  connections[0]?.goaway(0);
  await isTold;
  const second = await call(sessions);

  expect(second === first).toBe(false);
  // Its error comes when its socket is closed: without a listener that would end the process.
  expect(first.listenerCount('error')).toBeGreaterThan(0);
});

test('many calls over one connection leave no listeners behind', async () => {
  const { server } = await aCore();
  const sessions = new CoreSessions(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => sessions.abort());
  const session = await call(sessions);
  const before = session.listenerCount('error');

  for (let count = 0; count < 20; count += 1) expect((await call(sessions)) === session).toBe(true);

  expect(session.listenerCount('error')).toBe(before);
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

/** Makes a call, and gives the connection that it went over. */
async function call(sessions: CoreSessions): Promise<ClientHttp2Session> {
  const stream = await sessions.request('GET', '/', {}, {});
  const session = stream.session as ClientHttp2Session;
  await once(stream.resume(), 'close');
  return session;
}
