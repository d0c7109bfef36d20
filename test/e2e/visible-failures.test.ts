import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isKeySecret } from '../../common/rules/key-secret.ts';
import { times } from '../support/builders.ts';
import { growth, type Samples } from '../support/metrics.ts';
import { describeWithRedisServer, startRedis } from '../support/servers.ts';
import { aSeparateService, LEADS, type Service, startService } from '../support/service.ts';

const METRICS = {
  core: { CORE_METRICS_ADDRESS: '127.0.0.1:0' },
  gateway: { GATEWAY_METRICS_ADDRESS: '127.0.0.1:0' },
};

/** A service that serves its metrics, stopped after the test. */
const start = (env: { core?: Record<string, string>; gateway?: Record<string, string> } = {}): Promise<Service> =>
  aSeparateService({ core: { ...METRICS.core, ...env.core }, gateway: { ...METRICS.gateway, ...env.gateway } });

/** Well-formed: 32 zero bytes and their checksum. */
const A_SECRET = `lik_${Buffer.concat([Buffer.alloc(32), Buffer.from('190a55ad', 'hex')]).toString('base64url')}`;

const requests = (operation: string, outcome: string) =>
  `lead_intake_gateway_request_duration_seconds_count{operation="${operation}",outcome="${outcome}"}`;
const calls = (operation: string, outcome: string) =>
  `lead_intake_core_call_duration_seconds_count{operation="${operation}",outcome="${outcome}"}`;

/** Polls the value of a series. */
const polled = (read: () => Promise<Samples>, series: string) =>
  expect.poll(async () => (await read()).get(series), { timeout: 15_000, interval: 100 });

// The failures are those of docs/how-to/runbook.md.
describe('the metrics show', () => {
  test('that the store is unavailable, and that requests fail with integration_unavailable', async () => {
    const service = await start({ core: { DATABASE_URL: 'mongodb://127.0.0.1:1/away' } });
    expect(isKeySecret(A_SECRET)).toBe(true);

    expect((await service.get(A_SECRET)).status).toBe(503);

    const core = await service.coreMetrics();
    expect(core.get('lead_intake_core_store_up')).toBe(0);
    expect(core.get(calls('AuthenticateApiKey', 'UNAVAILABLE'))).toBe(1);
    const gateway = await service.gatewayMetrics();
    expect(gateway.get('lead_intake_gateway_core_up')).toBe(0);
    expect(gateway.get(requests('listLeads', 'integration_unavailable'))).toBe(1);
  });

  test('that the core is unavailable', async () => {
    const service = await start();
    const { secret } = await service.aStudioWithKey();
    await service.stopCore();
    onTestFinished(() => service.startCore());

    expect((await service.get(secret)).status).toBe(503);

    const gateway = await service.gatewayMetrics();
    await polled(service.gatewayMetrics, 'lead_intake_gateway_core_up').toBe(0);
    expect(gateway.get(requests('listLeads', 'integration_unavailable'))).toBe(1);
  });

  test('that requests wait for a core that is too slow', async () => {
    const sockets = new Set<Socket>();
    const silent = createServer((socket) => sockets.add(socket)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      silent.close();
    });
    const { port } = silent.address() as AddressInfo;
    const service = await start({ gateway: { CORE_URL: `http://127.0.0.1:${port}` } });

    const waiting = times(40, () =>
      fetch(`${service.url}${LEADS}`, { headers: { authorization: `Bearer ${A_SECRET}` } }),
    );

    await polled(service.gatewayMetrics, 'lead_intake_gateway_requests_under_way').toBe(40);
    const gateway = await service.gatewayMetrics();
    expect(gateway.get('lead_intake_gateway_core_requests_waiting{operation="AuthenticateApiKey"}')).toBeGreaterThan(0);
    for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(503);
    await polled(service.gatewayMetrics, 'lead_intake_gateway_requests_under_way').toBe(0);
    const after = await service.gatewayMetrics();
    expect(after.get('lead_intake_gateway_core_requests_waiting{operation="AuthenticateApiKey"}')).toBe(0);
    expect(after.get(requests('listLeads', 'integration_unavailable'))).toBe(40);
  });

  test('that keys are guessed, and that only well-formed ones reach the core', async () => {
    const service = await start();
    const before = { gateway: await service.gatewayMetrics(), core: await service.coreMetrics() };

    for (let index = 0; index < 30; index += 1) await service.get(`lik_guess${index}`);
    await service.get(A_SECRET);

    const invalid = requests('listLeads', 'integration_key_invalid');
    expect(growth(before.gateway, await service.gatewayMetrics())[invalid]).toBe(31);
    const asked = calls('AuthenticateApiKey', 'KEY_INVALID');
    expect(growth(before.core, await service.coreMetrics())[asked]).toBe(1);
  });

  test('that a process is stopping while it drains', async () => {
    const service = await startService({
      core: { ...METRICS.core, SHUTDOWN_DRAIN_MS: '1000' },
      gateway: { ...METRICS.gateway, SHUTDOWN_DRAIN_MS: '1000' },
    });

    const stopped = service.dispose();

    await polled(service.gatewayMetrics, 'lead_intake_gateway_stopping').toBe(1);
    await polled(service.coreMetrics, 'lead_intake_core_stopping').toBe(1);
    await stopped;
  });
});

describeWithRedisServer('the metrics show, with Redis,', () => {
  test('that Redis is unavailable, and that requests fail with integration_rate_unavailable', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const service = await start({ gateway: { REDIS_URL: redis.url } });
    const { secret } = await service.aStudioWithKey();
    expect((await service.get(secret)).status).toBe(200);
    expect((await service.gatewayMetrics()).get('lead_intake_gateway_quota_up')).toBe(1);
    await redis.kill();

    expect((await service.get(secret)).status).toBe(503);

    const gateway = await service.gatewayMetrics();
    await polled(service.gatewayMetrics, 'lead_intake_gateway_quota_up').toBe(0);
    expect(gateway.get('lead_intake_gateway_quota_duration_seconds_count{decision="unavailable"}')).toBe(1);
    expect(gateway.get(requests('listLeads', 'integration_rate_unavailable'))).toBe(1);
    expect(gateway.get('lead_intake_gateway_core_up')).toBe(1);
  });
});
