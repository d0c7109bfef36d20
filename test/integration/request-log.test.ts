import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiKeyScope } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import type { ListRequestsRequestSchema, LoggedRequest } from '../../proto/gen/leadintake/v1/request_log_pb.ts';
import { createCoreMetrics } from '../../src/rpc/metrics.ts';
import { callRunner } from '../../src/rpc/run-call.ts';
import { StoreUnavailable } from '../../src/store/port/faults.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { times } from '../support/builders.ts';
import { arrangeStudio, type CoreClients, connectToCore, type StudioWithKey } from '../support/core-clients.ts';
import { CORE_TOKEN } from '../support/grpc.ts';
import { scrape } from '../support/metrics.ts';
import { aCapture, anEmail, createAt, LEADS } from '../support/service.ts';
import { Canaries } from '../tools/canaries.ts';
import { readAddress, run } from '../tools/processes.ts';
import { aCoreOn } from './a-core.ts';
import { aGateway } from './a-gateway.ts';

const folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
const file = join(folder, 'leads.db');
const store = openSqliteStore(file);
/** While true, recording reports an error. */
let isBroken = false;
let core: Awaited<ReturnType<typeof aCoreOn>>;
let crm: CoreClients;

beforeAll(async () => {
  const breakable = {
    ...store,
    async recordRequests(...args: Parameters<typeof store.recordRequests>) {
      await store.recordRequests(...args);
      // The requests are recorded, but nobody knows.
      if (isBroken) throw new StoreUnavailable('broken by the test');
    },
  };
  core = await aCoreOn(breakable, callRunner(pino({ level: 'silent' }), createCoreMetrics()));
  crm = connectToCore(core.url, CORE_TOKEN);
});
afterAll(async () => {
  crm.close();
  core.close();
  await core.stop();
  await store.close();
  rmSync(folder, { recursive: true });
});

const recording = (env = {}) =>
  aGateway(core.url, { GATEWAY_REQUEST_LOG: 'yes', GATEWAY_METRICS_ADDRESS: '127.0.0.1:0', ...env });

const listed = async (studioId: string, query: MessageInitShape<typeof ListRequestsRequestSchema> = {}) =>
  (await crm.requestLog.listRequests({ studioId, ...query })).requests;

/** Waits until a studio has this many requests, and returns them, oldest first. */
async function recorded({ studioId }: StudioWithKey, count: number): Promise<LoggedRequest[]> {
  await expect.poll(async () => (await listed(studioId)).length).toBe(count);
  return (await listed(studioId)).toReversed();
}

const inAnHour = () => timestampFromMs(Date.now() + 3_600_000);

const read = (url: string, secret: string, path: string, requestId: string, init: RequestInit = {}) =>
  fetch(`${url}${LEADS}${path}`, {
    ...init,
    headers: { authorization: `Bearer ${secret}`, 'x-request-id': requestId, ...init.headers },
  });

describe('the log of requests', () => {
  // @proves requests-1 requests-3
  test('the request log has each answered request of a key, but no text of its sender', async () => {
    const canaries = new Canaries();
    const { url } = await recording({ QUOTA_LIMIT: '14' });
    const studio = await arrangeStudio(crm);
    const { secret, apiKeyId, studioId } = studio;
    const mail = canaries.add('email address', `canary.${randomUUID()}@example.org`);
    const capture = aCapture({
      displayName: canaries.add('name', `Canary ${randomUUID()}`),
      note: canaries.add('note', 'Sings canary at noon'),
      contact: anEmail(mail),
    });
    const key = canaries.add('idempotency key', randomUUID());
    const post = (requestId: string, headers: Record<string, string>, body: Record<string, unknown>) =>
      createAt(url, secret, { 'x-request-id': requestId, ...headers }, body);

    const created = await post('created', { 'idempotency-key': key }, capture);
    const leadId = ((await created.json()) as { lead: { id: string } }).lead.id;
    await post('replayed', { 'idempotency-key': key }, capture);
    await post('conflict', { 'idempotency-key': key }, aCapture());
    await post('open', {}, capture);
    await post(
      'faulty',
      { 'idempotency-key': mail },
      { [mail]: 1, displayName: 5, contact: { type: 'email', value: 'x' } },
    );
    await post('large', {}, aCapture({ note: 'x'.repeat(40_000) }));
    await post('source', {}, aCapture({ sourceId: randomUUID() }));
    await read(url, secret, `/${leadId.toUpperCase()}`, 'read');
    // A caller may mistake anything for an id.
    const typed = canaries.add('typed id', `00000000-0000-4000-8000-0049${'3012345678'.slice(0, 8)}`);
    await read(url, secret, `/${typed}`, 'unknown');
    await read(url, secret, `/${encodeURIComponent(mail)}`, 'no-id');
    await read(url, secret, '', 'list');
    await read(url, secret, `?limit=${mail}&cursor=${mail}`, 'bad-list');
    await fetch(`${url}${LEADS}/${leadId}`, { method: 'DELETE', headers: { authorization: `Bearer ${secret}` } });
    await fetch(`${url}${LEADS}`, { headers: { authorization: `Bearer ${secret.slice(0, -1)}~` } });
    await read(url, secret, '', 'counted-13');
    await read(url, secret, '', 'counted-14');
    await read(url, secret, '', 'limited');
    const { memberId } = studio;
    const scopes = [ApiKeyScope.LEADS_READ];
    const second = await crm.apiKeys.createApiKey({
      studioId,
      memberId,
      name: 'Second',
      scopes,
      expireTime: inAnHour(),
    });
    await read(url, second.secret, '', 'second');
    await crm.apiKeys.revokeApiKey({ studioId, memberId, apiKeyId: second.apiKey?.id ?? '' });
    await read(url, second.secret, '', 'revoked');
    // From now on the gateway does not know whose key it was.
    await read(url, second.secret, '', 'unknown-key');

    const requests = await recorded(studio, 17);
    const faulty = ['Idempotency-Key', '(unknown)', 'displayName', 'contact.value'];
    expect(
      requests.map(({ requestId, operation, status, code, faultyFields, leadId, replayed }) => [
        requestId,
        operation,
        status,
        code.replace('integration_', ''),
        faultyFields.toSorted(),
        leadId,
        replayed,
      ]),
    ).toEqual([
      ['created', 'createLead', 201, '', [], leadId, false],
      ['replayed', 'createLead', 201, '', [], leadId, true],
      ['conflict', 'createLead', 409, 'idempotency_conflict', [], '', false],
      ['open', 'createLead', 409, 'lead_already_open', [], leadId, false],
      ['faulty', 'createLead', 400, 'invalid_request', faulty.toSorted(), '', false],
      ['large', 'createLead', 400, 'invalid_request', ['body'], '', false],
      ['source', 'createLead', 400, 'source_invalid', [], '', false],
      ['read', 'getLead', 200, '', [], leadId, false],
      ['unknown', 'getLead', 404, 'lead_not_found', [], '', false],
      ['no-id', 'getLead', 400, 'invalid_request', ['id'], '', false],
      ['list', 'listLeads', 200, '', [], '', false],
      ['bad-list', 'listLeads', 400, 'invalid_request', ['cursor', 'limit'], '', false],
      ['counted-13', 'listLeads', 200, '', [], '', false],
      ['counted-14', 'listLeads', 200, '', [], '', false],
      ['limited', 'listLeads', 429, 'rate_limited', [], '', false],
      ['second', 'listLeads', 200, '', [], '', false],
      ['revoked', 'listLeads', 401, 'key_invalid', [], '', false],
    ]);
    for (const [index, each] of requests.entries()) {
      const of = index < 15 ? { apiKeyId, secretHint: secret.slice(-4) } : { secretHint: second.secret.slice(-4) };
      expect(each).toMatchObject({ studioId, omittedCount: 0, ...of });
      expect(Math.abs(Date.now() - timestampDate(each.time ?? expect.fail()).getTime())).toBeLessThan(60_000);
      expect(each.durationMs).toBeLessThan(60_000);
    }
    const stored = (await store.listRequests(studioId, null, 100)).records;
    expect(
      canaries.in(JSON.stringify([requests, stored], (_, value) => (typeof value === 'bigint' ? 0 : value))),
    ).toEqual([]);
    const bytes = [file, `${file}-wal`].map((each) => readFileSync(each, 'latin1')).join('');
    expect(bytes).toContain('"requestId":"faulty"');
    expect([bytes.includes(typed), /"(?:faultyFields|requestId|code)":[^}]*canary/.test(bytes)]).toEqual([
      false,
      false,
    ]);
    expect((await listed(studioId, { failed: true })).map(({ requestId }) => requestId)).toEqual(
      requests
        .filter(({ code }) => code)
        .map(({ requestId }) => requestId)
        .toReversed(),
    );
    expect(await listed(studioId, { xRequestId: 'open', apiKeyId })).toEqual([requests[3]]);
    expect(await listed(studioId, { apiKeyId: randomUUID() })).toEqual([]);
  }, 60_000);

  // @proves requests-3
  test("a studio's request log has no requests of another, and none without the setting", async () => {
    const [gateway, silent] = [await recording(), await aGateway(core.url)];
    const studios = [await arrangeStudio(crm), await arrangeStudio(crm, { scopes: [ApiKeyScope.LEADS_READ] })];
    await Promise.all(
      times(20, (index) => {
        const { secret, studioId } = studios[index % 2] as StudioWithKey;
        return createAt(gateway.url, secret, { 'x-request-id': `${studioId}.${index}` });
      }),
    );
    await createAt(silent.url, studios[0]?.secret ?? '');
    for (const [index, studio] of studios.entries()) {
      const requests = await recorded(studio, 10);
      for (const each of requests) {
        expect(each.requestId.startsWith(`${studio.studioId}.`)).toBe(true);
        expect([each.studioId, each.apiKeyId, each.status]).toEqual([
          studio.studioId,
          studio.apiKeyId,
          index ? 403 : 201,
        ]);
      }
    }
  });

  // @proves requests-2
  test('the request log has all requests of 2 s before a gateway was killed, or before it stopped', async () => {
    const studio = await arrangeStudio(crm);
    const env = { CORE_URL: core.url, CORE_TOKEN, GATEWAY_REQUEST_LOG: 'yes', SHUTDOWN_DRAIN_MS: '0' };
    /** Whether all requests of a gateway are recorded that is killed two seconds after its last response. */
    async function isAllRecorded(attempt: number): Promise<boolean> {
      const killed = run('gateway/main.ts', { env });
      const url = await readAddress(killed);
      const sent = times(5, (index) => `${attempt}.${index}`);
      for (const requestId of sent) await createAt(url, studio.secret, { 'x-request-id': requestId });
      await sleep(2000);
      killed.child.kill('SIGKILL');
      await killed.ended();
      const found = (await listed(studio.studioId)).map(({ requestId }) => requestId);
      return sent.every((requestId) => found.includes(requestId));
    }
    // On a stalled machine, two seconds may be no time.
    const attempts = [1, 2, 3].values();
    let isAll = false;
    for (let attempt = attempts.next(); !isAll && !attempt.done; attempt = attempts.next())
      isAll = await isAllRecorded(attempt.value);
    expect(isAll).toBe(true);

    const stopped = run('gateway/main.ts', { env });
    await createAt(await readAddress(stopped), studio.secret, { 'x-request-id': 'last' });
    stopped.child.kill('SIGTERM');
    expect(await stopped.ended()).toBe(0);
    expect((await listed(studio.studioId))[0]?.requestId).toBe('last');
  }, 120_000);

  // @proves requests-7 requests-1
  test('a request log that cannot be written delays no response, and is complete later', async () => {
    const gateway = await recording();
    const studio = await arrangeStudio(crm);
    isBroken = true;
    const answers = await Promise.all(times(10, () => createAt(gateway.url, studio.secret)));
    expect(answers.map(({ status }) => status)).toEqual(times(10, () => 201));
    // Recorded by attempts whose outcome is unknown.
    await expect.poll(async () => (await listed(studio.studioId)).length).toBeGreaterThan(0);
    expect((await createAt(gateway.url, studio.secret)).status).toBe(201);
    isBroken = false;
    const requests = await recorded(studio, 11);
    expect(new Set(requests.map(({ requestId }) => requestId)).size).toBe(11);
    const lost = [...(await scrape(gateway.metricsUrl))].filter(([name]) => name.includes('requests_unrecorded'));
    expect(lost.map(([, value]) => value)).toEqual([0, 0]);
  });
});
