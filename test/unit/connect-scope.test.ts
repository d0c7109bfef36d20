import type { IncomingMessage } from 'node:http';
import { connect } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type ConnectRouter, createContextValues } from '@connectrpc/connect';
import fastify, { type FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { connectScope } from '../../src/rpc/connect-scope.ts';
import { callRunner } from '../../src/rpc/run-call.ts';
import { onStream } from '../security/http2-wire.ts';

const log = pino({ level: 'silent' });

/** Serves health checks, and returns the answer to one. @param arrive called before the library sees the request */
async function answerWith(arrive: (request: IncomingMessage, begin: () => void) => void) {
  const routes = (router: ConnectRouter) => void router.service(Health, { check: () => ({ status: 1 }) });
  const exchange = { implement: () => expect.fail('no exchange is made'), readMaxBytes: 1 };
  const methods = { routes, exchange, readMaxBytes: 1000 };
  const scope = connectScope(methods, callRunner(log), log);
  const app = fastify({ http2: true }) as unknown as FastifyInstance;
  app.addHook('preHandler', async ({ raw }) => arrive(raw, () => scope.begin(raw, createContextValues())));
  app.register(scope.register);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const session = connect(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`);
  onTestFinished(async () => {
    session.destroy();
    await app.close();
  });
  const head = { ':method': 'POST', ':path': '/grpc.health.v1.Health/Check', 'content-type': 'application/json' };
  return onStream(session, head, Buffer.from('{}'));
}

test('the plugin serves a call', async () => {
  const answer = await answerWith((_, begin) => begin());
  expect(answer).toMatchObject({ status: 200, text: expect.stringContaining('SERVING') });
});

// In binary an empty message is valid, so the caller would read it as an empty result.
// @proves connect-16
test.each<[string, Parameters<typeof answerWith>[0]]>([
  [
    'the request that the library makes',
    (request, begin) => {
      begin();
      request.url = 'http://[';
    },
  ],
  ['the context of a call', () => {}],
])('a fault in %s resets the stream instead of sending a message', async (_, arrive) => {
  const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
  onTestFinished(() => printed.mockRestore());
  expect(await answerWith(arrive)).toMatchObject({ status: undefined, text: '{}' });
});
