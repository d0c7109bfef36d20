import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import {
  createLeadIntakeClient,
  type LeadCapture,
  type LeadIntakeClientOptions,
  LeadIntakeError,
  NoAnswerError,
  type ProblemError,
} from '../../sdk/index.ts';
import { ROOT } from '../support/processes.ts';
import { aService, type StudioWithKey } from '../support/service.ts';

const service = aService();

const capture = (overrides: Partial<LeadCapture> = {}): LeadCapture => ({
  displayName: 'Grace Hopper',
  contact: { type: 'email', value: `${randomUUID()}@example.org` },
  ...overrides,
});

// test/e2e/client-conformance.test.ts covers what every client does, with sdk/conformance. These tests cover the types of this one, with
// a real service.

/** A client of a service, and the number of requests that it has sent. */
function clientOf({ secret }: Pick<StudioWithKey, 'secret'>, options: Partial<LeadIntakeClientOptions> = {}) {
  let sent = 0;
  const countingFetch: typeof fetch = (url, init) => {
    sent += 1;
    return fetch(url, init);
  };
  const client = createLeadIntakeClient({ baseUrl: service.url, apiKey: secret, fetch: countingFetch, ...options });
  return { client, sent: () => sent };
}

const urlOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

/** Returns the error of a request that has to fail. */
async function errorOf(request: Promise<unknown>): Promise<LeadIntakeError> {
  const error = await request.then(
    (answer) => new Error(`it has not failed, but answered ${JSON.stringify(answer)}`),
    (error) => error,
  );
  if (!(error instanceof LeadIntakeError)) throw error;
  return error;
}

test('a refusal has everything that the service reports', async () => {
  const { client } = clientOf(await service.aStudioWithKey());

  const error = (await errorOf(
    client.createLead(capture({ displayName: '', note: '' }), { idempotencyKey: 'x' }),
  )) as ProblemError;

  expect(error).toMatchObject({
    name: 'ProblemError',
    message: expect.stringMatching(/^400 integration_invalid_request \(.*displayName.*\): The request is not valid\.$/),
    code: 'integration_invalid_request',
    status: 400,
    type: expect.stringMatching(/^https:.*\/integration_invalid_request$/),
    title: 'The request is not valid.',
    requestId: expect.stringMatching(/./),
    retryAfterSeconds: undefined,
    attempts: 1,
    written: 'no',
  });
  expect(Object.keys(error.fields).sort()).toEqual(['Idempotency-Key', 'displayName', 'note']);
});

test('a response that decompresses to more than 4 MiB is rejected before its end', async () => {
  const packed = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '));
  const server = createServer((_, response) => {
    response.writeHead(201, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(packed);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { client } = clientOf({ secret: newKeySecret() }, { baseUrl: urlOf(server), deadlineMs: 1000 });

  const error = await errorOf(client.createLead(capture()));

  expect(error).toBeInstanceOf(NoAnswerError);
  expect(error).toMatchObject({ written: 'unknown', cause: new Error('the answer 201 is longer than 4 MiB') });
});

test('a key in place of the options is refused before anything is sent', async () => {
  const { client, sent } = clientOf({ secret: newKeySecret() });
  const request = client.createLead(capture(), randomUUID() as unknown as object);
  await expect(request).rejects.toThrow(TypeError);
  expect(sent()).toBe(0);
});

test("follows the environment's proxies where Node does, as its README says", async () => {
  let tunnels = 0;
  const proxy = createServer().listen(0, '127.0.0.1');
  proxy.on('connect', (_, socket) => {
    tunnels += 1;
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  });
  onTestFinished(() => void proxy.close());
  await once(proxy, 'listening');
  const program = `
    import { createLeadIntakeClient } from './sdk/index.ts';
    const [baseUrl, apiKey] = ['https://api.example.com', '${newKeySecret()}'];
    await createLeadIntakeClient({ baseUrl, apiKey, deadlineMs: 1000 }).listLeads().catch(() => {});`;
  const env = { PATH: process.env.PATH, HTTPS_PROXY: urlOf(proxy), NODE_USE_ENV_PROXY: '1' };
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { cwd: ROOT, env });
  expect(tunnels).toBe(1);
});
