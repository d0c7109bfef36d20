import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { times } from '../support/builders.ts';
import { arrangeStudio, type CoreClients, connectToCore } from '../support/core-clients.ts';
import { scrape } from '../support/metrics.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { addressOf, type RunningProcess, run, temporaryFolder } from '../support/processes.ts';
import { aRedis, describeWithRedisServer } from '../support/servers.ts';
import { CORE_TOKEN, createAt, LEADS } from '../support/service.ts';

const QUOTA_LIMIT = '1000000';

/** The ids of the serving processes, by their log lines. */
const serving = (running: RunningProcess) =>
  [...running.output().matchAll(/"pid":(\d+),.*Server listening at/g)].map(([, pid]) => Number(pid));

async function aCore(env: Record<string, string> = {}) {
  const DATABASE_URL = `sqlite:${join(temporaryFolder(), 'leads.db')}`;
  const running = run('src/main.ts', { env: { DATABASE_URL, CORE_TOKEN, ...env } });
  const CORE_URL = await addressOf(running);
  const clients = connectToCore(CORE_URL, CORE_TOKEN);
  onTestFinished(() => clients.close());
  return { running, CORE_URL, clients };
}

/** Creates leads, each over its own connection, until it is stopped; a failed connection counts as 'cut'. */
function load(url: string, secret: string) {
  const counts = new Map<string, number>();
  let isOver = false;
  const loops = times(4, async () => {
    while (!isOver) {
      const answer = await createAt(url, secret, { connection: 'close' }).catch(() => undefined);
      const outcome = answer ? String(answer.status) : 'cut';
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
      await answer?.arrayBuffer();
    }
  });
  const created = () => counts.get('201') ?? 0;
  return {
    async more(by: number) {
      const enough = created() + by;
      await vi.waitUntil(() => created() >= enough, { timeout: 30_000 });
    },
    async stop() {
      isOver = true;
      await Promise.all(loops);
      return Object.fromEntries(counts);
    },
  };
}

describeWithRedisServer('gateways on one port', () => {
  test('share connections, quota and metrics; one that is killed is replaced, and only its own requests fail', async () => {
    const { CORE_URL, clients } = await aCore();
    const { secret } = await arrangeStudio(clients);
    const env = { CORE_URL, CORE_TOKEN, QUOTA_LIMIT, REDIS_URL: (await aRedis()).url, GATEWAY_PROCESSES: '2' };
    const gateway = run('gateway/main.ts', { env: { ...env, GATEWAY_METRICS_ADDRESS: '127.0.0.1:0' } });
    const [, metricsUrl] = await gateway.printed(/"url":"(http:[^"]+\/metrics)"/);
    const url = await addressOf(gateway);
    await gateway.printed(/"count":2,.*processes are serving on one port/);
    expect(new Set(serving(gateway)).size).toBe(2);

    const under = load(url, secret);
    await under.more(100);
    for (const pid of serving(gateway)) await gateway.printed(new RegExp(`"pid":${pid},.*"status":201`));
    const [first = 0] = serving(gateway);
    process.kill(first, 'SIGKILL');
    await expect.poll(() => serving(gateway).length, { timeout: 20_000 }).toBe(3);
    expect(gateway.output()).toMatch(/"signal":"SIGKILL".*starting another/);
    await under.more(100);
    const { 201: created = 0, cut = 0, ...others } = await under.stop();
    expect(others).toEqual({});
    // At most the request in flight of each of the four loops.
    expect(cut).toBeLessThanOrEqual(4);

    const before = await scrape(metricsUrl);
    const of = (samples: typeof before, name: string) =>
      [...samples].filter(([series]) => series.startsWith(name)).reduce((sum, [, value]) => sum + value, 0);
    for (let request = 0; request < 10; request += 1) {
      await fetch(`${url}${LEADS}`, { headers: { authorization: `Bearer ${newKeySecret()}`, connection: 'close' } });
    }
    const after = await scrape(metricsUrl);
    const counted = 'lead_intake_gateway_request_duration_seconds_count';
    expect(of(after, counted) - of(before, counted)).toBe(10);
    expect(of(after, 'lead_intake_gateway_core_up')).toBe(1);
    expect(of(after, 'lead_intake_build_info')).toBe(1);
    expect(created).toBeGreaterThan(200);
  }, 90_000);

  test('are replaced one by one on SIGHUP and end together on SIGTERM, without a failed request', async () => {
    const { CORE_URL, clients } = await aCore();
    const { secret } = await arrangeStudio(clients);
    const env = { CORE_URL, CORE_TOKEN, QUOTA_LIMIT, REDIS_URL: (await aRedis()).url, GATEWAY_PROCESSES: '2' };
    const gateway = run('gateway/main.ts', { env: { ...env, SHUTDOWN_DRAIN_MS: '500' } });
    const url = await addressOf(gateway);
    await gateway.printed(/processes are serving on one port/);
    const before = serving(gateway);

    const under = load(url, secret);
    await under.more(50);
    gateway.child.kill('SIGHUP');
    await gateway.printed(/all processes replaced/);
    await under.more(50);
    expect(Object.keys(await under.stop())).toEqual(['201']);
    const after = serving(gateway).slice(2);
    expect(after).toHaveLength(2);
    for (const pid of before) expect(() => process.kill(pid, 0)).toThrow('ESRCH');

    gateway.child.kill('SIGTERM');
    expect(await gateway.ended()).toBe(0);
    for (const pid of after) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  }, 90_000);

  test('do not start when one cannot, and report the reason', async () => {
    const env = {
      REDIS_URL: (await aRedis()).url,
      GATEWAY_PROCESSES: '2',
      GATEWAY_HOST: '192.0.2.1',
      SHUTDOWN_DRAIN_MS: '0',
    };
    const gateway = run('gateway/main.ts', { env });
    expect(await gateway.ended()).toBe(1);
    expect(gateway.output()).toMatch(/EADDRNOTAVAIL/);
    expect(gateway.output()).toMatch(/process exited before it served \(status 1\)/);
  });
});

describeWithMongo('cores on one port', (mongoUrl) => {
  test('share calls and metrics, and one that is killed is replaced', async () => {
    const env = { DATABASE_URL: mongoUrl(), CORE_PROCESSES: '2', CORE_METRICS_ADDRESS: '127.0.0.1:0' };
    const { running, CORE_URL } = await aCore(env);
    await running.printed(/processes are serving on one port/);
    const [, metricsUrl] = await running.printed(/"url":"(http:[^"]+\/metrics)"/);
    const callers: CoreClients[] = [];
    onTestFinished(() => {
      for (const caller of callers) caller.close();
    });
    const hasServed = (pid: number) => new RegExp(`"pid":${pid},.*"operation":"ListStudios"`).test(running.output());
    // The system assigns connections to the processes.
    while (!serving(running).every(hasServed)) {
      const more = times(8, () => connectToCore(CORE_URL, CORE_TOKEN));
      callers.push(...more);
      await Promise.all(more.map(({ directory }) => directory.listStudios({})));
    }
    const samples = await scrape(metricsUrl);
    const counted = 'lead_intake_core_call_duration_seconds_count{operation="ListStudios",outcome="ok"}';
    expect(samples.get(counted)).toBe(callers.length);

    const [first = 0] = serving(running);
    process.kill(first, 'SIGKILL');
    await vi.waitUntil(() => serving(running).length === 3, { timeout: 20_000 });
    for (const { directory } of callers) {
      await vi.waitUntil(
        () =>
          directory.listStudios({}).then(
            () => true,
            () => sleep(50, false),
          ),
        { timeout: 20_000 },
      );
    }
    running.child.kill('SIGTERM');
    expect(await running.ended()).toBe(0);
  }, 90_000);
});

describe('an unsupported configuration of several processes', () => {
  test.each([
    ['gateway/main.ts', { GATEWAY_PROCESSES: '2' }, /GATEWAY_PROCESSES needs REDIS_URL/],
    ['gateway/main.ts', { GATEWAY_PROCESSES: 'many' }, /GATEWAY_PROCESSES must be a whole number from 1 to 256/],
    ['src/main.ts', { CORE_PROCESSES: '2' }, /CORE_PROCESSES needs MongoDB/],
  ])('%s with %o does not start', async (file, env, complaint) => {
    const running = run(file, { env });
    expect(await running.ended()).toBe(1);
    expect(running.output()).toMatch(complaint);
  });
});
