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
import { times } from '../support/builders.ts';
import { ROOT } from '../support/processes.ts';
import { aService, expectLead, type StudioWithKey } from '../support/service.ts';

const service = aService();

const capture = (overrides: Partial<LeadCapture> = {}): LeadCapture => ({
  displayName: 'Grace Hopper',
  contact: { type: 'email', value: `${randomUUID()}@example.org` },
  ...overrides,
});

// test/e2e/client-conformance.test.ts covers retries, deadlines, errors and what is known of a write, with sdk/conformance. These
// tests cover the types of this client, with a real service.

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

test('a creation returns the lead and its idempotency key, under which a repetition returns the same lead', async () => {
  const studio = await service.aStudioWithKey();
  const { client } = clientOf(studio);
  const data = capture({ sourceId: studio.sourceId, note: 'Asks for a trial.' });

  const created = await client.createLead(data);

  expect(expectLead(created.lead)).toMatchObject({ displayName: data.displayName, note: data.note, stage: 'new' });
  expect(created).toMatchObject({ replayed: false });
  const { idempotencyKey } = created;
  expect(await client.createLead(data, { idempotencyKey })).toEqual({ ...created, replayed: true });
  expect(await service.countLeads(studio.studioId)).toBe(1);
});

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

// Regardless of the reason that a caller gives.
test.each([new Error('the visitor is gone'), null])(
  'a call cancelled during an attempt reports that the outcome is unknown, with the reason as its cause: %s',
  async (reason) => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    onTestFinished(() => void silent.close());
    await once(silent, 'listening');
    const { client } = clientOf({ secret: newKeySecret() }, { baseUrl: urlOf(silent) });
    const controller = new AbortController();
    silent.on('request', () => controller.abort(reason));

    const error = await errorOf(client.createLead(capture(), { signal: controller.signal }));

    expect(error).toMatchObject({ written: 'unknown', cause: reason, attempts: 1 });
  },
);

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

test('a list has all leads, newest first, and reads each page on demand', async () => {
  const { client, sent } = clientOf(await service.aStudioWithKey());
  const ids: string[] = [];
  for (const _ of times(7, () => 0)) ids.unshift((await client.createLead(capture())).lead.id);
  const before = sent();

  const listed: string[] = [];
  for await (const { id } of client.allLeads({ limit: 3 })) {
    listed.push(id);
    expect(sent() - before).toBe(Math.ceil(listed.length / 3));
  }

  expect(listed).toEqual(ids);
  const page = await client.listLeads({ limit: 5 });
  expect(page.leads.map(({ id }) => id)).toEqual(ids.slice(0, 5));
  expect((await client.listLeads({ cursor: page.nextCursor ?? '' })).leads).toHaveLength(2);
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
