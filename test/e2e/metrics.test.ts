import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { METHODS } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { canSetClocks, MachineClock } from '../support/machine-clock.ts';
import { growth, type Samples, scrape } from '../support/metrics.ts';
import { rawConversation } from '../support/raw-http.ts';
import { aCapture, aService, CORE_TOKEN, LEADS, type StudioWithKey } from '../support/service.ts';
import { ROOT, readAddress, run, temporaryFolder } from '../tools/processes.ts';

const METRICS = {
  core: { CORE_METRICS_ADDRESS: '127.0.0.1:0' },
  gateway: { GATEWAY_METRICS_ADDRESS: '127.0.0.1:0' },
};

const service = aService(METRICS);
let studio: StudioWithKey;
beforeAll(async () => {
  studio = await service.aStudioWithKey();
});

/** Returns the growth of the matching series during some work. */
async function counted(read: () => Promise<Samples>, name: RegExp, work: () => Promise<unknown>) {
  const before = await read();
  await work();
  const grown = growth(before, await read());
  return Object.fromEntries(Object.entries(grown).filter(([series]) => name.test(series)));
}

/** Sends one request for each outcome of a creation. */
async function createInEveryWay(): Promise<void> {
  const { secret } = studio;
  const body = aCapture();
  const name = { 'idempotency-key': randomUUID() };
  await service.post(secret, body, name);
  await service.post(secret, body, name);
  await service.post(secret, { ...body, displayName: 'Another' }, name);
  await service.post(secret, body);
  await service.post(secret, {});
}

describe('the metrics', () => {
  test('the gateway counts requests by operation and outcome, and replays separately', async () => {
    const grown = await counted(service.gatewayMetrics, /_(?:count\{operation=.*outcome|total)/, async () => {
      await createInEveryWay();
      await service.get(studio.secret);
      await service.get(studio.secret, `/${randomUUID()}`);
      await service.get('no key');
      await fetch(`${service.url}/healthz`);
    });

    const count = (operation: string, outcome: string) =>
      `lead_intake_gateway_request_duration_seconds_count{operation="${operation}",outcome="${outcome}"}`;
    expect(grown).toMatchObject({
      [count('createLead', 'ok')]: 2,
      [count('createLead', 'integration_idempotency_conflict')]: 1,
      [count('createLead', 'integration_lead_already_open')]: 1,
      [count('createLead', 'integration_invalid_request')]: 1,
      [count('listLeads', 'ok')]: 1,
      [count('getLead', 'integration_lead_not_found')]: 1,
      [count('listLeads', 'integration_key_invalid')]: 1,
      [count('healthz', 'ok')]: 1,
      lead_intake_gateway_replays_total: 1,
    });
  });

  test('the core counts calls by operation and outcome, and the sizes of messages and commits', async () => {
    const grown = await counted(service.coreMetrics, /_(?:count\{|total)/, createInEveryWay);

    const count = (operation: string, outcome: string) =>
      `lead_intake_core_call_duration_seconds_count{operation="${operation}",outcome="${outcome}"}`;
    expect(grown).toMatchObject({
      // The gateway authenticates the key of the refused request separately; the other requests carry their key with them.
      [count('AuthenticateApiKey', 'ok')]: 1,
      [count('CreateLead', 'ok')]: 2,
      [count('CreateLead', 'IDEMPOTENCY_CONFLICT')]: 1,
      [count('CreateLead', 'LEAD_ALREADY_OPEN')]: 1,
      lead_intake_core_replays_total: 1,
      'lead_intake_core_batch_requests_count{operation="CreateLead"}': 4,
      // A scrape commits, too, because it distributes the changes that it counts.
      'lead_intake_core_store_duration_seconds_count{command="commit",outcome="ok"}': expect.toBeOneOf([4, 5]),
      'lead_intake_core_store_batch_size_count{command="commit"}': expect.toBeOneOf([4, 5]),
    });
  });

  test('the metrics have the version, the health of the process and its dependencies', async () => {
    const gateway = await service.gatewayMetrics();
    const core = await service.coreMetrics();

    const [, release] = /^## (\d+\.\d+\.\d+) /m.exec(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')) ?? [];

    for (const samples of [gateway, core]) {
      expect(samples.get(`lead_intake_build_info{version="${release}",node="${process.version}"}`)).toBe(1);
      expect(samples.get('process_resident_memory_bytes')).toBeGreaterThan(1e6);
      expect(samples.get('nodejs_eventloop_lag_p99_seconds')).toBeGreaterThanOrEqual(0);
    }
    for (const name of ['core_up', 'quota_up']) expect(gateway.get(`lead_intake_gateway_${name}`)).toBe(1);
    expect(core.get('lead_intake_core_store_up')).toBe(1);
    for (const series of [
      'lead_intake_gateway_requests_under_way',
      'lead_intake_gateway_core_requests_waiting{operation="CreateLead"}',
    ])
      expect(gateway.get(series)).toBe(0);
    expect(core.get('lead_intake_core_calls_under_way')).toBe(0);
    expect([gateway.get('lead_intake_gateway_stopping'), core.get('lead_intake_core_stopping')]).toEqual([0, 0]);
  });

  test('the metrics have the size of the SQLite log, even if the database is a link', async () => {
    const folder = temporaryFolder();
    const [file, link] = [join(folder, 'leads.db'), join(folder, 'link.db')];
    writeFileSync(file, '');
    symlinkSync(file, link);
    const aCore = async (databaseUrl: string) => {
      const core = run('src/main.ts', { env: { ...METRICS.core, CORE_TOKEN, DATABASE_URL: databaseUrl } });
      const [, url] = await core.printed(/(http:\/\/[0-9.:]+\/metrics)/);
      return { core, size: async () => (await scrape(url)).get('lead_intake_core_sqlite_log_bytes') };
    };
    const { core, size } = await aCore(`sqlite:${link}`);
    const clients = connectToCore(await readAddress(core), CORE_TOKEN);
    onTestFinished(() => clients.close());
    // The open transaction keeps the log from being truncated.
    const reader = new DatabaseSync(file);
    onTestFinished(() => reader.close());
    reader.exec('BEGIN; SELECT * FROM studios');
    await arrangeStudio(clients);
    await expect.poll(async () => Number(await size()) - statSync(`${file}-wal`).size).toBe(0);
    expect(await size()).toBeGreaterThan(0);

    expect(await (await aCore('mongodb://127.0.0.1:1/leads')).size()).toBeUndefined();
  });

  test.runIf(canSetClocks)(
    "the metrics have the core's time, and count when its clock falls behind recorded times",
    async () => {
      const clock = new MachineClock('core', temporaryFolder());
      const core = run('src/main.ts', {
        env: {
          ...clock.settings,
          CORE_TOKEN,
          CORE_METRICS_ADDRESS: '127.0.0.1:0',
          DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}`,
        },
      });
      const clients = connectToCore(await readAddress(core), CORE_TOKEN);
      onTestFinished(() => clients.close());
      const [, url] = await core.printed(/(http:\/\/[0-9.:]+\/metrics)/);
      const read = () => scrape(url);
      const aheadSeconds = async () =>
        ((await read()).get('lead_intake_core_clock_timestamp_seconds') ?? 0) - Date.now() / 1000;
      const create = () => arrangeStudio(clients);

      expect(Math.abs(await aheadSeconds())).toBeLessThan(60);
      clock.set(3600);
      await expect.poll(aheadSeconds).toBeGreaterThan(3500);
      await create();
      expect((await read()).get('lead_intake_core_clock_set_back_total')).toBe(0);
      clock.set(0);
      await expect.poll(aheadSeconds).toBeLessThan(60);
      await create();
      expect((await read()).get('lead_intake_core_clock_set_back_total')).toBe(1);
    },
  );

  // @proves bounds-33
  test('the metrics have the same series whatever names requests contain', async () => {
    const randomName = (): string => randomBytes(6).toString('hex');
    const { host } = new URL(service.url);
    const everything = async () => {
      await Promise.all(METHODS.filter((method) => method !== 'HEAD').map((method) => send(method, LEADS)));
      for (const path of [
        `/${randomName()}`,
        `${LEADS}/${randomName()}`,
        `${LEADS}?${randomName()}=1`,
        `/docs/${randomName()}`,
      ]) {
        await send('GET', path);
        await send(randomName().toUpperCase(), path);
      }
      await service.post(
        studio.secret,
        { [randomName()]: 1 },
        { 'x-request-id': randomName(), [randomName()]: randomName() },
      );
      await service.get(`lik_${randomName()}`);
      await service.get(studio.secret, `/${randomUUID()}`);
      await service.leads.getLead({ studioId: randomName(), leadId: randomName() }).catch(() => {});
      await fetch(`${service.url}/v1/%zz`);
    };
    const send = (method: string, path: string) =>
      rawConversation(service.url, `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    const series = async () =>
      [...(await service.gatewayMetrics()).keys(), ...(await service.coreMetrics()).keys()].filter((name) =>
        name.startsWith('lead_intake_'),
      );
    await everything();
    const before = await series();

    for (let round = 0; round < 2; round += 1) await everything();

    expect(await series()).toEqual(before);
    expect(before.length).toBeLessThan(1100);
  });

  test('the metrics address serves only metrics', async () => {
    for (const url of [service.gatewayMetricsUrl, service.coreMetricsUrl]) {
      expect((await fetch(url as string)).headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
      expect((await fetch(`${url}?x=y`)).status).toBe(200);
      expect((await fetch(url as string, { method: 'POST' })).status).toBe(404);
      expect((await fetch(new URL('/', url))).status).toBe(404);
    }
    expect((await fetch(`${service.url}/metrics`)).status).toBe(404);
  });
});
