import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { ROOT } from '../../test/tools/processes.ts';
import { aServedService, type Scope } from '../../test/tools/served-service.ts';
import { check, createLeadIntakeClient, type LeadCapture, NoAnswerError } from '../index.ts';
import { createOutbox, keyFor, OutboxError } from '../outbox/index.ts';
import { unknownKey } from './support/key-secret.ts';

const service = aServedService();

const capture = (): LeadCapture => ({
  displayName: 'Grace Hopper',
  contact: { type: 'email', value: `${randomUUID()}@example.org` },
});

// sdk/test/conformance.test.ts covers the behaviour of every client. These tests cover only this client, with a real service.

const toUrl = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

// @proves clients-8
test.for<{ scopes: Scope[]; create: string; read: string }>([
  { scopes: ['leads.create', 'leads.read'], create: 'create_granted', read: 'read_granted' },
  { scopes: ['leads.create'], create: 'create_granted', read: 'read_missing' },
  { scopes: ['leads.read'], create: 'create_missing', read: 'read_granted' },
])('a check of a real service finds $create and $read, and writes nothing', async ({ scopes, create, read }) => {
  const { studioId, secret } = await service.aStudioWithKey({ scopes });

  const { findings } = await check({ baseUrl: service.url, apiKey: secret });

  expect(findings.map(({ code }) => code)).toEqual(['address_right', 'key_right', create, read, 'clock_right']);
  expect(await service.countLeads(studioId)).toBe(0);
});

// @proves clients-8
test('a check of a real service finds an unknown key and a wrong path', async () => {
  const codes = async (baseUrl: string) =>
    (await check({ baseUrl, apiKey: unknownKey() })).findings.slice(0, 2).map(({ code }) => code);
  expect(await codes(service.url)).toEqual(['address_right', 'key_refused']);
  expect(await codes(`${service.url}/crm`)).toEqual(['wrong_path', 'not_checked']);
});

test('reads bypass a fetch that caches responses, as in Next.js 14', async () => {
  const { secret } = await service.aStudioWithKey();
  const kept = new Map<string, Promise<Response>>();
  const keeping: typeof fetch = async (url, init) => {
    if (init?.cache === 'no-store' || init?.method !== 'GET') return fetch(url, init);
    const response = kept.get(String(url)) ?? fetch(url, init);
    kept.set(String(url), response);
    return (await response).clone();
  };
  const client = createLeadIntakeClient({ baseUrl: service.url, apiKey: secret, fetch: keeping });
  const before = await client.listLeads();
  await client.createLead(capture());
  expect([before.leads, (await client.listLeads()).leads]).toMatchObject([[], [{ displayName: 'Grace Hopper' }]]);
});

// Fractions, and limits that no timer can hold.
test.for([100_000 / 3, 2 ** 31 + 0.5, Number.MAX_VALUE])('each call accepts a time limit of %d ms', async (ms) => {
  const { secret } = await service.aStudioWithKey();
  const limits = { deadlineMs: ms, attemptTimeoutMs: ms };
  const server = { baseUrl: service.url, apiKey: secret };
  expect(await check({ ...server, ...limits })).toMatchObject({ canCreate: true, canRead: true });
  for (const [client, options] of [
    [createLeadIntakeClient({ ...server, ...limits }), {}],
    [createLeadIntakeClient(server), { deadlineMs: ms }],
  ] as const) {
    const { lead } = await client.createLead(capture(), options);
    expect(await client.getLead(lead.id, options)).toEqual(lead);
    expect((await client.listLeads(options)).leads).toContainEqual(lead);
  }
});

test('a time limit below a millisecond ends a call', async () => {
  const client = createLeadIntakeClient({
    baseUrl: service.url,
    apiKey: unknownKey(),
    attemptTimeoutMs: 0.3,
    deadlineMs: 0.3,
  });
  await expect(client.listLeads()).rejects.toThrow(NoAnswerError);
});

// @proves clients-11
test.for([
  [7 as unknown as string, new Date(), 'must be a string'],
  ['\ud800', new Date(), 'well-formed Unicode'],
  ['page', new Date('tomorrow'), 'a valid date'],
] as const)('keyFor derives no key from %j at %s', ([formKey, at, reason]) => {
  expect(() => keyFor(formKey, capture(), at)).toThrow(reason);
});

// @proves clients-10
test('createLeadIntakeClient throws in a browser', () => {
  const page = `
    import { createLeadIntakeClient } from './sdk/index.ts';
    globalThis.document = {};
    const make = () => createLeadIntakeClient({ baseUrl: 'https://api.example.com', apiKey: '${unknownKey()}' });
    make(); // Node, with a document of a test
    globalThis.process = undefined;
    make();`;
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', page], { cwd: ROOT });
  return expect(run).rejects.toMatchObject({ stderr: expect.stringContaining('a client belongs on a server') });
});

test('the TypeScript client rejects a response that decompresses to more than 4 MiB', async () => {
  const packed = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '));
  const server = createServer((_, response) => {
    response.writeHead(201, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(packed);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const client = createLeadIntakeClient({ baseUrl: toUrl(server), apiKey: unknownKey(), deadlineMs: 60_000 });

  const error = await client.createLead(capture()).catch((error) => error);

  expect(error).toBeInstanceOf(NoAnswerError);
  expect(error).toMatchObject({ written: 'unknown', cause: new Error('the answer 201 is longer than 4 MiB') });
});

test("the TypeScript client uses the environment's proxies where Node does, as its README says", async () => {
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
    const [baseUrl, apiKey] = ['https://api.example.com', '${unknownKey()}'];
    await createLeadIntakeClient({ baseUrl, apiKey, deadlineMs: 1000 }).listLeads().catch(() => {});`;
  const env = { PATH: process.env.PATH, HTTPS_PROXY: toUrl(proxy), NODE_USE_ENV_PROXY: '1' };
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { cwd: ROOT, env });
  expect(tunnels).toBe(1);
});

test('the outbox refuses a connection that returns rows as arrays, and sends nothing', async () => {
  const { studioId, secret } = await service.aStudioWithKey();
  const client = createLeadIntakeClient({ baseUrl: service.url, apiKey: secret });
  const database = new DatabaseSync(':memory:', { returnArrays: true });
  const outbox = createOutbox();
  await outbox.setUp(database);
  expect(() => outbox.add(database, capture())).toThrow(OutboxError);
  await expect(outbox.deliver(database, client)).rejects.toThrow(OutboxError);
  expect(await service.countLeads(studioId)).toBe(0);
});

/** Returns a driver that answers every statement with the same result. */
const sqliteDriver = (result: unknown) => ({ prepare: () => ({ run: () => result, all: () => result }) });
const statement = { run: () => statement, all: () => statement };

const UNSUITABLE: Readonly<Record<string, unknown>> = {
  'whose statements are promises': { prepare: async () => statement },
  'that cannot prepare statements': { prepare: () => Promise.reject(new Error('closed')) },
  'that counts no rows': sqliteDriver({ changes: Number.NaN }),
  'for PostgreSQL that counts no rows': { query: async () => ({ rows: undefined, rowCount: Number.NaN }) },
};

test.each(Object.entries(UNSUITABLE))('every outbox operation refuses a driver %s', async (_, driver) => {
  const connection = driver as DatabaseSync;
  const outbox = createOutbox();
  const client = createLeadIntakeClient({ baseUrl: service.url, apiKey: unknownKey() });
  const operations = {
    setUp: () => outbox.setUp(connection),
    add: () => outbox.add(connection, capture()),
    deliver: () => outbox.deliver(connection, client),
    needsAttention: () => outbox.needsAttention(connection),
    retry: () => outbox.retry(connection, randomUUID()),
    discard: () => outbox.discard(connection, randomUUID()),
  };
  for (const [name, operation] of Object.entries(operations)) {
    await expect((async () => operation())(), name).rejects.toThrow(/^The database connection has not returned /);
  }
});
