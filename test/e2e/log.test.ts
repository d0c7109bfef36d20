import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { arrangeStudio, connectToCore, type StudioWithKey } from '../support/core-clients.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { LEADS } from '../support/service.ts';
import { anAuthority, writeCertificate } from '../tools/certificates.ts';
import { bash, ROOT, type RunningProcess, readAddress, run, temporaryFolder } from '../tools/processes.ts';
import { describeIf, hasCommand } from '../tools/servers.ts';

const CORE_TOKEN = 'a token that must not be logged, and long';

interface Processes {
  readonly core: RunningProcess;
  readonly gateway: RunningProcess;
  readonly url: string;
  readonly studio: StudioWithKey;
}

/** Starts a core and a gateway as separate processes. Their output is their log. */
async function startBoth(env: Record<string, string> = {}): Promise<Processes> {
  const core = run('src/main.ts', {
    env: { ...env, CORE_TOKEN, DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}` },
  });
  const coreUrl = await readAddress(core);
  const gateway = run('gateway/main.ts', { env: { ...env, CORE_TOKEN, CORE_URL: coreUrl } });
  const url = await readAddress(gateway);
  const clients = connectToCore(coreUrl, CORE_TOKEN);
  onTestFinished(() => clients.close());
  return { core, gateway, url, studio: await arrangeStudio(clients) };
}

type Line = Readonly<Record<string, unknown>>;

/** Returns the lines of a request once its last one is written. */
async function linesAbout(process: RunningProcess, requestId: string): Promise<Line[]> {
  await process.printed(new RegExp(`"requestId":"${requestId}".*"durationMs"`));
  const lines = process.output().split('\n');
  return lines.filter((line) => line.includes(`"requestId":"${requestId}"`)).map((line) => JSON.parse(line) as Line);
}

/** Returns the fields of a line other than those that every line has. */
const selectFields = ({ level: _level, time: _time, pid: _pid, hostname: _hostname, durationMs, ...line }: Line) => {
  expect(durationMs).toEqual(expect.any(Number));
  return line;
};

function create({ url, studio }: Processes, requestId: string, idempotencyKey: string, body: object) {
  const headers = {
    authorization: `Bearer ${studio.secret}`,
    'content-type': 'application/json',
    'idempotency-key': idempotencyKey,
    'x-request-id': requestId,
  };
  return { url: `${url}${LEADS}`, init: { method: 'POST', headers, body: JSON.stringify(body) } };
}

test.each([
  ['', '127.0.0.0/24'],
  ['whole', '127.0.0.1'],
  ['none', undefined],
])(
  'the log line of a request without a valid key shows its origin as the setting allows: %s',
  async (setting, client) => {
    const gateway = run('gateway/main.ts', { env: { LOG_CLIENT_ADDRESSES: setting } });
    await fetch((await readAddress(gateway)) + LEADS, { headers: { 'x-request-id': 'refused' } });
    const [line] = await linesAbout(gateway, 'refused');
    expect([line?.outcome, line?.client]).toEqual(['integration_key_invalid', client]);
  },
);

test('gateway and core log the request id, caller, operation, outcome and lead of each request', {
  tags: ['7.2'],
}, async () => {
  const processes = await startBoth();
  const { core, gateway, studio } = processes;
  const { studioId, apiKeyId } = studio;
  const body = { displayName: 'Hidden Name', contact: { type: 'email', value: 'hidden@example.org' }, note: 'hidden' };
  const key = randomUUID();
  const send = async (requestId: string, idempotencyKey: string, data: object) => {
    const { url, init } = create(processes, requestId, idempotencyKey, data);
    return (await (await fetch(url, init)).json()) as { lead?: { id: string } };
  };

  const { lead } = await send('first', key, body);
  await send('again', key, body);
  await send('other-data', key, { ...body, note: 'hidden, too' });
  await send('other-key', randomUUID(), body);
  await send('faulty', randomUUID(), { ...body, 'hidden property': 1 });

  const caller = { studioId, apiKeyId };
  const at = { name: 'gateway', operation: 'createLead', ...caller };
  const leadId = lead?.id;
  const gatewayLines: Line[] = [
    { ...at, requestId: 'first', status: 201, outcome: 'ok', replayed: false, leadId },
    { ...at, requestId: 'again', status: 201, outcome: 'ok', replayed: true, leadId },
    { ...at, requestId: 'other-data', status: 409, outcome: 'integration_idempotency_conflict' },
    { ...at, requestId: 'other-key', status: 409, outcome: 'integration_lead_already_open', leadId },
    { ...at, requestId: 'faulty', status: 400, outcome: 'integration_invalid_request' },
  ];
  for (const expected of gatewayLines) {
    expect((await linesAbout(gateway, String(expected.requestId))).map(selectFields)).toEqual([expected]);
  }
  const authentication = { name: 'core', operation: 'AuthenticateApiKey', outcome: 'ok', ...caller };
  const creation = { name: 'core', operation: 'CreateLead', studioId };
  for (const [requestId, ...own] of [
    // The gateway looks up a key separately at its first request, and for a request that it does not send to the core.
    ['first', authentication, { ...creation, outcome: 'ok', replayed: false, leadId }],
    ['again', { ...creation, outcome: 'ok', replayed: true, leadId }],
    ['other-data', { ...creation, outcome: 'IDEMPOTENCY_CONFLICT' }],
    ['other-key', { ...creation, outcome: 'LEAD_ALREADY_OPEN', leadId }],
    ['faulty', authentication],
  ] as const) {
    const expected = own.map((line) => ({ ...line, requestId }));
    await expect.poll(async () => (await linesAbout(core, requestId)).map(selectFields)).toEqual(expected);
  }
  for (const { output } of [core, gateway]) expect(output()).not.toMatch(/hidden|must not be logged/i);
  for (const { output } of [core, gateway]) expect(output()).not.toContain(studio.secret.slice(4, 40));
});

test('gateway and core log the trace id of a traced request', async () => {
  const receiver = await startOtlpReceiver();
  onTestFinished(() => receiver.stop());
  const { core, gateway, url, studio } = await startBoth({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url });
  const traceId = '0af7651916cd43dd8448eb211c80319c';
  const headers = {
    authorization: `Bearer ${studio.secret}`,
    traceparent: `00-${traceId}-b7ad6b7169203331-01`,
    'x-request-id': 'traced',
  };
  await fetch(`${url}${LEADS}`, { headers });
  for (const process of [gateway, core]) {
    for (const line of await linesAbout(process, 'traced')) expect(line).toMatchObject({ traceId });
  }
});

test('a request whose caller disconnects before the response is logged by gateway and core', async () => {
  const processes = await startBoth();
  const { core, gateway, studio } = processes;
  const headers = { authorization: `Bearer ${studio.secret}`, 'x-request-id': 'left' };
  core.child.kill('SIGSTOP');
  const leaving = request(`${processes.url}${LEADS}`, { headers }).on('error', () => {});
  const sent = once(leaving, 'finish');
  leaving.end();
  await sent;
  // The gateway has seen the request before it answers a later one.
  await fetch(`${processes.url}/healthz`);
  // The caller resets the connection, because one that only ends its sending side may still read the response.
  leaving.socket?.resetAndDestroy();

  const lines = await linesAbout(gateway, 'left');
  core.child.kill('SIGCONT');

  expect(lines).toEqual([expect.objectContaining({ operation: 'listLeads', outcome: 'not_answered' })]);
  expect(await linesAbout(core, 'left')).toContainEqual(expect.objectContaining({ outcome: 'ok' }));
});

test('the log has the causes of a fault, and a line for a request with an undecodable path', async () => {
  const { gateway, core, url, studio } = await startBoth();
  core.child.kill('SIGKILL');
  await core.ended();

  const headers = { authorization: `Bearer ${studio.secret}`, 'x-request-id': 'in-vain' };
  await fetch(`${url}${LEADS}`, { headers });
  await fetch(`${url}/v1/%zz`, { headers: { 'x-request-id': 'no-url' } });

  const [fault, line] = await linesAbout(gateway, 'in-vain');
  expect(fault).toMatchObject({ level: 50, err: { type: 'Problem', stack: expect.stringContaining('caused by: ') } });
  expect(line).toMatchObject({ level: 30, status: 503, outcome: 'integration_unavailable' });
  const unreadable = { operation: 'other', status: 400, outcome: 'integration_invalid_request' };
  expect(await linesAbout(gateway, 'no-url')).toEqual([expect.objectContaining(unreadable)]);
});

describe('the settings in the log', () => {
  test('a core logs at startup whether it uses TLS and who may call it', async () => {
    const authority = await anAuthority('of the test');
    const { cert, key } = writeCertificate(temporaryFolder(), 'core', await authority.issue('localhost', 'server'));
    const ca = join(temporaryFolder(), 'ca.pem');
    const callers = join(temporaryFolder(), 'callers.json');
    writeFileSync(ca, authority.cert);
    writeFileSync(
      callers,
      JSON.stringify({ callers: { site: { may: ['gateway'], tokens: [{ sha256: '0'.repeat(64) }] } } }),
    );
    const tls = { CORE_TLS_CERT_FILE: cert, CORE_TLS_KEY_FILE: key };
    const env = { CORE_CALLERS_FILE: callers, ...tls, CORE_TLS_CLIENT_CA_FILE: ca, DATABASE_URL: `sqlite:${ca}.db` };
    const expected = { tls: true, mutualTls: true, letsIn: ['1 callers of CORE_CALLERS_FILE'] };
    expect(await startLine(run('src/main.ts', { env }))).toMatchObject(expected);
  });

  test('a gateway logs at startup how it reaches its core and where it counts requests', async () => {
    for (const [env, expected] of [
      [{}, { limit: 600, windowSeconds: 60, tls: false, presents: [], countsIn: 'the memory of this process' }],
      [
        { CORE_TOKEN, CORE_URL: 'https://localhost:1', QUOTA_STUDIO_LIMIT: '9', REDIS_URL: 'redis://127.0.0.1:1' },
        { tls: true, presents: ['CORE_TOKEN'], studioLimit: 9, countsIn: expect.stringContaining('Redis') },
      ],
    ] as const)
      expect(await startLine(run('gateway/main.ts', { env }))).toMatchObject(expected);
  });
});

describeIf(hasCommand('script'), 'in a terminal', 'install bsdutils', () => {
  test('the log is human-readable on a terminal', async () => {
    const folder = temporaryFolder();
    const env = `DATABASE_URL=sqlite:${folder}/leads.db CORE_PORT=0 SHUTDOWN_DRAIN_MS=0`;
    const command = `${env} timeout -s TERM 5 '${process.execPath}' '${ROOT}/src/main.ts'`;

    const output = await bash(`script -qec "${command}" ${folder}/typescript < /dev/null`);

    expect(output).toMatch(/INFO.*core.*Server listening at http/);
    expect(output).not.toContain('{"level"');
  });
});

/** Returns the line that describes the settings in force. */
async function startLine(process: RunningProcess): Promise<Line> {
  const [line] = await process.printed(/^.*settings in force.*$/m);
  return JSON.parse(line) as Line;
}
