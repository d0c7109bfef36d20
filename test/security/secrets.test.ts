import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { ApiKeyScope } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { MemberRole, StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { toContactKeys } from '../../src/domain/contact.ts';
import { times } from '../support/builders.ts';
import { arrangeStudio, type CoreClients, connectToCore } from '../support/core-clients.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { lines, rawConversation } from '../support/raw-http.ts';
import { LEADS, type StudioWithKey } from '../support/service.ts';
import { Canaries } from '../tools/canaries.ts';
import { type RunningProcess, readAddress, run, start, temporaryFolder } from '../tools/processes.ts';
import { describeWithRedisServer, freePort, type RedisServer, startRedis } from '../tools/servers.ts';
import { startProxy } from '../tools/tcp-proxy.ts';

/** A person whose data must not appear in logs or errors. */
function aPerson(canaries: Canaries) {
  const mark = randomBytes(6).toString('hex');
  const email = canaries.add('email address', `canary.${mark}@example.org`);
  const phone = canaries.add('phone number', `+49 30 ${Number.parseInt(mark.slice(0, 8), 16)}`);
  for (const value of [email, phone]) {
    const type = value === email ? 'email' : 'phone';
    for (const key of toContactKeys({ type, value }, { regionCode: null, formerRegions: [] }).contactKeys) {
      canaries.add('hash of a contact', key);
    }
  }
  return {
    email,
    phone,
    displayName: canaries.add('name', `Canary Ünlü-${mark}`),
    note: canaries.add('note', `Sings "${mark}" at noon`),
  };
}

/** A core and a gateway in separate processes, which log as much as possible. */
interface Processes {
  readonly canaries: Canaries;
  readonly folder: string;
  readonly core: RunningProcess;
  readonly gateway: RunningProcess;
  readonly coreUrl: string;
  readonly url: string;
  readonly token: string;
  readonly crm: CoreClients;
  /** The spans that the processes have sent. */
  readonly receiver: OtlpReceiver;
  aStudioWithKey(scopes?: readonly ApiKeyScope[]): Promise<StudioWithKey>;
}

/** @param onEnd receives the cleanup functions; by default they run at the end of the test */
async function startProcesses(
  env: Readonly<Record<string, string>> = {},
  canaries: Canaries = new Canaries(),
  onEnd: (end: () => void | Promise<void>) => void = onTestFinished,
): Promise<Processes> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  onEnd(() => rmSync(folder, { recursive: true, force: true }));
  const token = canaries.add('token of the core', `canary-token-${randomUUID()}`);
  const receiver = await startOtlpReceiver();
  onEnd(() => receiver.stop());
  const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_BSP_SCHEDULE_DELAY: '100' };
  const metrics = { CORE_METRICS_ADDRESS: '127.0.0.1:0', GATEWAY_METRICS_ADDRESS: '127.0.0.1:0' };
  const CORE_PORT = `${await freePort()}`;
  const common = {
    ...metrics,
    ...traced,
    CORE_PORT,
    CORE_URL: `http://127.0.0.1:${CORE_PORT}`,
    CORE_TOKEN: token,
    LOG_LEVEL: 'trace',
    DATABASE_URL: `sqlite:${join(folder, 'leads.db')}`,
    ...env,
  };
  // Each takes some time to start, so both start concurrently.
  const core = start('src/main.ts', { env: common });
  onEnd(() => core.kill());
  const gateway = start('gateway/main.ts', { env: common });
  onEnd(() => gateway.kill());
  const [coreUrl, url] = await Promise.all([readAddress(core), readAddress(gateway)]);
  const crm = connectToCore(coreUrl, token);
  onEnd(() => crm.close());
  return {
    canaries,
    folder,
    core,
    gateway,
    coreUrl,
    url,
    token,
    crm,
    receiver,
    async aStudioWithKey(scopes) {
      const studio = await arrangeStudio(crm, scopes ? { scopes } : {});
      canaries.addKey(studio.secret);
      return studio;
    },
  };
}

/** Returns everything that both processes show their operators: output, spans and, while they run, metrics. */
async function operatorOutput({ core, gateway, receiver }: Processes): Promise<string> {
  const outputs = [core.output(), gateway.output()];
  const urls = outputs.flatMap((output) => output.match(/http:\/\/[0-9.:]+\/metrics/g) ?? []);
  const metrics = urls.map((url) =>
    fetch(url).then(
      (answer) => answer.text(),
      () => '',
    ),
  );
  return [...outputs, receiver.text(), ...(await Promise.all(metrics))].join('\n');
}

type Person = ReturnType<typeof aPerson>;

const makeCapture = (person: Person, overrides: object = {}) => ({
  displayName: person.displayName,
  contact: { type: 'email', value: person.email },
  note: person.note,
  ...overrides,
});

/** Sends a request to the gateway; returns the status and all text of the response. */
async function send(
  { url }: Processes,
  method: string,
  path: string,
  secret: string,
  { body, headers = {} }: { readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<{ status: number; text: string }> {
  const response = await fetch(`${url}${LEADS}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${secret}`,
      ...(body !== undefined && { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = JSON.stringify(Object.fromEntries(response.headers)) + (await response.text());
  return { status: response.status, text };
}

/** Expects an error that contains no canary. */
function expectNoCanary({ canaries }: Processes, answer: { status: number; text: string }, status: number): void {
  expect({ status: answer.status, shows: canaries.in(answer.text), text: answer.text }).toEqual({
    status,
    shows: [],
    text: answer.text,
  });
}

/** Waits until the gateway has logged and traced the request, and thereby everything before it. */
async function untilLogged({ gateway, receiver }: Processes, requestId: string): Promise<void> {
  await gateway.printed(new RegExp(`${requestId}[^]*?durationMs`));
  await expect.poll(() => receiver.text()).toContain(requestId);
}

/** Expects the log to contain the last request, and no canary. */
async function expectNoCanaryLogged(processes: Processes, secret: string): Promise<void> {
  const requestId = `Last.${randomUUID()}`;
  await send(processes, 'GET', '', secret, { headers: { 'x-request-id': requestId } });
  await untilLogged(processes, requestId);
  expect(processes.canaries.in(await operatorOutput(processes))).toEqual([]);
}

/** Makes every mistake that a caller of the gateway can make, with a person's data in the request. */
async function sendInvalidRequests(processes: Processes, person: Person): Promise<void> {
  const studio = await processes.aStudioWithKey();
  const { secret, studioId, memberId, apiKeyId } = studio;
  const { crm, canaries } = processes;
  const capture = makeCapture(person);
  const bodies: unknown[] = [
    JSON.stringify(capture).slice(0, -3),
    `${JSON.stringify(capture)} ${person.email}`,
    `{"displayName":"${person.displayName}" "${person.email}"`,
    JSON.stringify(capture).replaceAll('"', "'"),
    [capture],
    { ...capture, displayName: [person.displayName] },
    { ...capture, displayName: person.displayName.repeat(30) },
    { ...capture, contact: person.email },
    { ...capture, contact: { type: 'email', value: `${person.email} x` } },
    { ...capture, contact: { type: 'phone', value: person.note.repeat(5) } },
    { ...capture, contact: { type: person.email, value: person.email } },
    { ...capture, sourceId: person.phone },
    { ...capture, note: { text: person.note } },
    { ...capture, extra: person.note },
    { ...capture, note: person.note.repeat(3000) },
  ];
  for (const body of bodies) expectNoCanary(processes, await send(processes, 'POST', '', secret, { body }), 400);
  expectNoCanary(
    processes,
    await send(processes, 'POST', '', secret, { body: { ...capture, sourceId: randomUUID() } }),
    400,
  );
  const named = { 'idempotency-key': encodeURIComponent(person.email) };
  expectNoCanary(processes, await send(processes, 'POST', '', secret, { body: capture, headers: named }), 400);
  for (const path of [`/${person.email}`, `?cursor=${person.email}`, `?limit=${person.phone}`]) {
    expectNoCanary(processes, await send(processes, 'GET', encodeURI(path), secret), 400);
  }
  expectNoCanary(processes, await send(processes, 'GET', encodeURI(`/x/${person.email}`), secret), 404);
  expectNoCanary(
    processes,
    await send(processes, 'PUT', encodeURI(`?x=${person.email}`), secret, { body: capture }),
    405,
  );
  expectNoCanary(processes, await send(processes, 'GET', `/${randomUUID()}?key=${secret}`, secret), 404);
  for (const fault of ['Broken', 'X: a\0b', `Content-Length: ${person.email}`, `Expect: ${encodeURI(person.email)}`]) {
    const head = lines(`POST ${LEADS} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${secret}`, fault, '');
    for (const { status, body } of await rawConversation(processes.url, head + JSON.stringify(capture), {
      end: true,
    })) {
      expectNoCanary(processes, { status, text: String(body) }, 400);
    }
  }
  // A key in each of its states.
  const broken = canaries.addKey(secret.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')));
  const unknown = canaries.addKey(newKeySecret());
  for (const each of [broken, unknown, `${secret} ${secret}`]) {
    expectNoCanary(processes, await send(processes, 'POST', '', each, { body: capture }), 401);
  }
  // A caller of either port sends a secret as its request id.
  const id = { 'x-request-id': `id.${secret}` };
  expectNoCanary(processes, await send(processes, 'GET', `/${randomUUID()}`, secret, { headers: id }), 404);
  await crm.directory.putStudio({ studio: { id: studioId, status: StudioStatus.ACTIVE } }, { headers: id });
  const basic = { authorization: `Basic ${Buffer.from(`${secret}:`).toString('base64')}` };
  expectNoCanary(processes, await send(processes, 'GET', '', secret, { headers: basic }), 401);
  const reader = await processes.aStudioWithKey([ApiKeyScope.LEADS_READ]);
  expectNoCanary(processes, await send(processes, 'POST', '', reader.secret, { body: capture }), 403);
  const replaced = await crm.apiKeys.replaceApiKey({ studioId, memberId, apiKeyId });
  canaries.addKey(replaced.secret);
  expectNoCanary(processes, await send(processes, 'POST', '', secret, { body: capture }), 401);
  await crm.directory.putMember({ member: { studioId, id: memberId, role: MemberRole.STAFF } });
  expectNoCanary(processes, await send(processes, 'POST', '', replaced.secret, { body: capture }), 403);
  await crm.directory.putStudio({ studio: { id: studioId, status: StudioStatus.SUSPENDED } });
  expectNoCanary(processes, await send(processes, 'POST', '', replaced.secret, { body: capture }), 402);
}

/** Sends every successful request, and those that conflict with them. */
async function sendValidRequests(processes: Processes, { secret }: StudioWithKey, person: Person): Promise<void> {
  const headers = { 'idempotency-key': randomUUID() };
  const capture = makeCapture(person);
  const created = await send(processes, 'POST', '', secret, { body: capture, headers });
  expect(created.status).toBe(201);
  // The response omits the contact even for keys that may read, and contains the rest.
  expect(processes.canaries.in(created.text)).toEqual(['name', 'note']);
  expect((await send(processes, 'POST', '', secret, { body: capture, headers })).status).toBe(201);
  const conflict = await send(processes, 'POST', '', secret, { body: { ...capture, note: person.phone }, headers });
  expectNoCanary(processes, conflict, 409);
  expectNoCanary(processes, await send(processes, 'POST', '', secret, { body: capture }), 409);
  const byPhone = makeCapture(person, { contact: { type: 'phone', value: person.phone } });
  expect((await send(processes, 'POST', '', secret, { body: byPhone })).status).toBe(201);
  expect((await send(processes, 'GET', '', secret)).status).toBe(200);
}

/** Processes shared by all tests that do not change them. */
let shared: Processes;
const ends: (() => void | Promise<void>)[] = [];
beforeAll(async () => {
  shared = await startProcesses({}, new Canaries(), (end) => ends.push(end));
});
afterAll(async () => {
  for (const end of ends.toReversed()) await end();
});

// @proves secrets-5
test('the checks see the whole output of both processes, and detect a printed secret', async () => {
  const processes = shared;
  const { secret, studioId } = await processes.aStudioWithKey();
  const requestId = `First.${randomUUID()}`;
  await send(processes, 'GET', '', secret, { headers: { 'x-request-id': requestId } });
  await untilLogged(processes, requestId);

  expect(processes.gateway.output()).toContain(studioId);
  expect((await operatorOutput(processes)).match(/^lead_intake_build_info/gm)).toHaveLength(2);
  await processes.core.printed(new RegExp(requestId));

  // The command line does print a new key, for its recipient.
  const cli = run('operator/cli.ts', {
    args: ['keys', 'create', studioId, '--member', 'owner-1', '--name', 'x'],
    env: { DATABASE_URL: `sqlite:${join(processes.folder, 'leads.db')}` },
  });
  expect(await cli.ended()).toBe(0);
  const [made = ''] = /lik_\S{48}/.exec(cli.output()) ?? [];
  const canaries = new Canaries();
  canaries.addKey(made);
  expect(canaries.in(cli.output())).toEqual(['secret of a key', 'most of a secret']);
});

// @proves secrets-5 node-24
describe('logs and errors contain no secret and no personal data', () => {
  test('logs and errors of successful and refused requests have no secret and no personal data', async () => {
    const processes = shared;
    const studio = await processes.aStudioWithKey();
    await sendValidRequests(processes, studio, aPerson(processes.canaries));
    await sendInvalidRequests(processes, aPerson(processes.canaries));
    await expectNoCanaryLogged(processes, studio.secret);
  });

  test('a locked or damaged database and an uncaught error reveal no secret and no personal data', async () => {
    const crash = "process.on('SIGUSR2', () => { setImmediate(() => { throw new Error('on purpose'); }); })";
    const reject = "process.on('SIGWINCH', () => { Promise.reject(new Error('on purpose')); })";
    const options = `--import=data:text/javascript,${encodeURIComponent(`${crash};${reject}`)}`;
    const processes = await startProcesses({ NODE_OPTIONS: options });
    const { canaries, folder } = processes;
    const studio = await processes.aStudioWithKey();
    const path = join(folder, 'leads.db');
    const lock = new DatabaseSync(path, { timeout: 100_000 });
    onTestFinished(() => lock.close());
    lock.exec('BEGIN EXCLUSIVE');
    const locked = await send(processes, 'POST', '', studio.secret, { body: makeCapture(aPerson(canaries)) });
    expect([500, 503]).toContain(locked.status);
    expectNoCanary(processes, locked, locked.status);
    lock.exec('ROLLBACK');

    for (const file of [path, `${path}-wal`]) writeSync(openSync(file, 'r+'), randomBytes(200_000), 0);
    for (const _ of times(3, () => 0)) {
      const answer = await send(processes, 'POST', '', studio.secret, { body: makeCapture(aPerson(canaries)) });
      if (answer.status >= 400) expectNoCanary(processes, answer, answer.status);
    }
    await processes.core.printed(/"level":50/);
    await expectNoCanaryLogged(processes, studio.secret);

    processes.gateway.child.kill('SIGUSR2');
    processes.core.child.kill('SIGWINCH');
    for (const running of [processes.gateway, processes.core]) {
      expect(await running.ended()).not.toBe(0);
      expect(running.output()).toContain('on purpose');
    }
    expect(processes.canaries.in(await operatorOutput(processes))).toEqual([]);
  });

  describeWithRedisServer('failures of Redis', () => {
    /** Failures of a Redis, in order of severity. */
    const FAILURES: readonly (readonly [what: string, begin: (redis: RedisServer) => unknown])[] = [
      ['has no memory left', (redis) => redis.command('CONFIG', 'SET', 'maxmemory', '1')],
      ['refuses every command of the user', (redis) => redis.command('ACL', 'SETUSER', 'gateway', 'nocommands')],
      [
        'has another password',
        async (redis) => {
          await redis.command('ACL', 'SETUSER', 'gateway', 'resetpass', '>another');
          await redis.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        },
      ],
      ['is silent', (redis) => redis.pause()],
      ['is gone', (redis) => redis.kill()],
    ];

    test('no failure of Redis reveals a secret or personal data', async () => {
      const redis = await startRedis();
      onTestFinished(() => redis.stop());
      const canaries = new Canaries();
      canaries.add('password of Redis', new URL(redis.url).password);
      const processes = await startProcesses({ REDIS_URL: redis.url }, canaries);
      const studio = await processes.aStudioWithKey();
      await sendValidRequests(processes, studio, aPerson(canaries));
      for (const [what, begin] of FAILURES) {
        await begin(redis);
        await vi.waitFor(
          async () => {
            const answer = await send(processes, 'POST', '', studio.secret, { body: makeCapture(aPerson(canaries)) });
            expect([what, answer.status]).toEqual([what, 503]);
            expectNoCanary(processes, answer, 503);
          },
          { timeout: 100_000 },
        );
        await fetch(`${processes.url}/readyz`);
        await expectNoCanaryLogged(processes, studio.secret);
      }
    });
  });

  test('a MongoDB that refuses connections reveals no secret and no personal data', async () => {
    const canaries = new Canaries();
    const password = canaries.add('password of MongoDB', `canary-password-${randomUUID()}`);
    const DATABASE_URL = `mongodb://crm:${password}@127.0.0.1:1/leads`;
    const processes = await startProcesses({ DATABASE_URL }, canaries);
    const secret = canaries.addKey(newKeySecret());
    const body = makeCapture(aPerson(canaries));
    expectNoCanary(processes, await send(processes, 'POST', '', secret, { body }), 503);
    await expectNoCanaryLogged(processes, secret);
    const cli = run('operator/cli.ts', { args: ['studios', 'get', 'a'], env: { DATABASE_URL } });
    expect(await cli.ended()).toBe(1);
    expect(canaries.in(cli.output())).toEqual([]);
  });

  describeWithMongo('when the database is MongoDB', (mongoUrl) => {
    test('requests on MongoDB reveal no secret or personal data, even while it is unavailable', async () => {
      const canaries = new Canaries();
      const { hostname, port } = new URL(mongoUrl());
      const proxy = await startProxy(hostname, Number(port));
      onTestFinished(() => proxy.stop());
      const DATABASE_URL = `mongodb://127.0.0.1:${proxy.port}/test-${randomUUID()}`;
      const processes = await startProcesses({ DATABASE_URL }, canaries);
      const studio = await vi.waitFor(() => processes.aStudioWithKey(), { timeout: 100_000 });
      await sendValidRequests(processes, studio, aPerson(canaries));
      proxy.refuse();
      for (const _ of times(3, () => 0)) {
        const body = makeCapture(aPerson(canaries));
        expectNoCanary(processes, await send(processes, 'POST', '', studio.secret, { body }), 503);
      }
      await expectNoCanaryLogged(processes, studio.secret);
    });
  });
});

// @proves secrets-5 mongodb-16
describe('a process that cannot start reveals no secret', () => {
  const canary = () => `canary-${randomUUID()}`;
  const fileWith = (text: string) => {
    const path = join(temporaryFolder(), 'file');
    writeFileSync(path, text);
    return path;
  };
  const KEY = (secret: string) => `-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY-----\n`;

  test.each<[what: string, file: string, env: (secret: string) => Record<string, string>]>([
    [
      'a core with faults in all its settings',
      'src/main.ts',
      (secret) => ({
        CORE_TOKEN: `${secret}\n${secret}`,
        CORE_TLS_KEY_FILE: fileWith(secret),
        DATABASE_URL: `mongodb://crm:a@${secret}@db`,
        LOG_LEVEL: secret.slice(0, 3),
      }),
    ],
    [
      'an invalid private key',
      'src/main.ts',
      (secret) => ({ CORE_TLS_KEY_FILE: fileWith(KEY(secret)), CORE_TLS_CERT_FILE: fileWith(KEY(secret)) }),
    ],
    [
      'a gateway with faults in all its settings',
      'gateway/main.ts',
      (secret) => ({
        CORE_TOKEN_FILE: fileWith(`${secret}\n${secret}`),
        CORE_URL: `http://gateway:${secret}@core`,
        PUBLIC_URL: `https://me:${secret}@leads`,
        REDIS_URL: `redis://gateway:a#${secret}@redis`,
      }),
    ],
  ])('a process that cannot start reveals no secret: %s', async (_, file, env) => {
    const canaries = new Canaries();
    const running = run(file, { env: { LOG_LEVEL: 'trace', ...env(canaries.add('secret', canary())) } });

    expect(await running.ended()).toBe(1);
    expect(running.output()).not.toBe('');
    expect(canaries.in(running.output())).toEqual([]);
  });

  test('a process whose port is in use reveals no secret', async () => {
    const processes = shared;
    const env = { CORE_TOKEN: processes.token, LOG_LEVEL: 'trace' };
    const DATABASE_URL = `sqlite:${join(processes.folder, 'other.db')}`;
    const core = run('src/main.ts', { env: { ...env, CORE_PORT: new URL(processes.coreUrl).port, DATABASE_URL } });
    const gateway = run('gateway/main.ts', { env: { ...env, GATEWAY_PORT: new URL(processes.url).port } });
    for (const running of [core, gateway]) {
      expect(await running.ended()).toBe(1);
      expect(running.output()).toContain('EADDRINUSE');
      expect(processes.canaries.in(running.output())).toEqual([]);
    }
  });
});
