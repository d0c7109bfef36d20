import { once } from 'node:events';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { aService, CORE_TOKEN, LEADS } from '../support/service.ts';
import { readAddress, run, temporaryFolder } from '../tools/processes.ts';

/** Returns the settings of a core on a separate database. */
const coreSettings = () => ({ DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}` });

test('the health checks end with status 0 while a process serves, else with 1 and a reason', async () => {
  const core = run('src/main.ts', { env: coreSettings() });
  const { port } = new URL(await readAddress(core));

  expect(await run('src/check-health.ts', { env: { CORE_PORT: port } }).ended()).toBe(0);
  core.child.kill('SIGTERM');
  await core.ended();
  const coreCheck = run('src/check-health.ts', { env: { CORE_PORT: port } });
  expect(await coreCheck.ended()).toBe(1);
  expect(coreCheck.output()).toMatch(/^the core at http:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED.*\n$/);
  const mistaken = run('src/check-health.ts', { env: { CORE_PORT: '70000' } });
  expect(await mistaken.ended()).toBe(1);
  expect(mistaken.output()).toBe('the core at http://127.0.0.1:70000: Invalid URL\n');

  const gateway = run('gateway/main.ts', { env: { CORE_URL: `http://127.0.0.1:${port}` } });
  const GATEWAY_PORT = new URL(await readAddress(gateway)).port;
  const gatewayCheck = run('gateway/check-health.ts', {
    env: { GATEWAY_PORT, NODE_USE_ENV_PROXY: '1', HTTP_PROXY: 'http://127.0.0.1:1', http_proxy: 'http://127.0.0.1:1' },
  });
  expect(await gatewayCheck.ended()).toBe(1);
  expect(gatewayCheck.output()).toMatch(/^the gateway at http:\S+: 503, it is not ready: .*\n$/);
});

describe('an invalid configuration', () => {
  test.each([
    ['src/main.ts', { CORE_PORT: '70000', DATABASE_URL: 'oracle:x', LOG_LEVEL: 'loud' }],
    ['gateway/main.ts', { GATEWAY_PORT: 'http', QUOTA_LIMIT: '0', REDIS_URL: 'memcached://x', CORE_URL: 'here' }],
  ])('%s does not start with invalid settings, and lists all faults', async (file, env) => {
    const running = run(file, { env });

    expect(await running.ended()).toBe(1);
    for (const name of Object.keys(env)) expect(running.output()).toContain(`- ${name} must be`);
    expect(running.output()).not.toMatch(/^ +at /m);
  });
});

describe('an orderly stop of the gateway', () => {
  const service = aService();

  // @proves crashes-7 node-19
  test('a stopping gateway is unready and ends keep-alive, but serves despite a second signal', async () => {
    const core = run('src/main.ts', { env: coreSettings() });
    const gateway = run('gateway/main.ts', {
      env: { CORE_URL: await readAddress(core), SHUTDOWN_DRAIN_MS: '8000' },
    });
    const url = await readAddress(gateway);
    const before = await fetch(`${url}/readyz`);
    expect(before.headers.get('connection')).toBe('keep-alive');

    gateway.child.kill('SIGTERM');
    await expect.poll(async () => (await fetch(`${url}/readyz`)).status).toBe(503);
    gateway.child.kill('SIGTERM');
    const during = await fetch(`${url}/healthz`);

    expect(during.status).toBe(200);
    expect(during.headers.get('connection')).toBe('close');
    expect(await gateway.ended()).toBe(0);
  });

  // @proves crashes-7
  test('a gateway and a core may drain for longer than any other deadline, and serve until the end', async () => {
    const env = { SHUTDOWN_DRAIN_MS: '11000' };
    const core = run('src/main.ts', { env: { ...coreSettings(), ...env } });
    const gateway = run('gateway/main.ts', { env: { ...env, CORE_URL: await readAddress(core) } });
    const url = await readAddress(gateway);

    for (const { child } of [core, gateway]) child.kill('SIGTERM');
    const stoppedAt = performance.now();
    const ends = Promise.all([core.ended(), gateway.ended()]);
    let sentAt = stoppedAt;
    for (let isServing = true; isServing; await sleep(100)) {
      sentAt = performance.now();
      // A 401 for this unknown key shows that the gateway reached the core.
      const headers = { authorization: `Bearer ${newKeySecret()}` };
      const answer = await fetch(`${url}/v1/integrations/leads`, { headers }).catch(() => undefined);
      isServing = answer?.status === 401;
    }

    expect(await ends).toEqual([0, 0]);
    // The first request without a response was sent at the end of the drain.
    expect(sentAt - stoppedAt).toBeGreaterThan(10_200);
  });

  // @proves crashes-7 fastify-6
  test('a stopping gateway completes a request that has begun to arrive', async () => {
    const { secret } = await service.aStudioWithKey();
    const gateway = run('gateway/main.ts', { env: { CORE_URL: service.coreUrl, CORE_TOKEN } });
    const url = await readAddress(gateway);
    const headers = { 'content-type': 'application/json', expect: '100-continue', authorization: `Bearer ${secret}` };
    const begun = request(`${url}${LEADS}`, { method: 'POST', headers });
    const answered = new Promise<number | undefined>((resolve, reject) => {
      begun.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject);
    });
    await new Promise((resolve) => begun.on('continue', resolve).flushHeaders());

    gateway.child.kill('SIGTERM');
    begun.end('{}');

    expect(await answered).toBe(400);
    expect(await gateway.ended()).toBe(0);
  });

  // @proves crashes-7
  test('a stopping gateway answers a request that does not arrive in time with 408, and logs it', async () => {
    const { secret } = await service.aStudioWithKey();
    const gateway = run('gateway/main.ts', { env: { CORE_URL: service.coreUrl, CORE_TOKEN, LOG_LEVEL: 'info' } });
    const url = await readAddress(gateway);
    const headers = { 'content-length': '50', authorization: `Bearer ${secret}`, 'x-request-id': 'the-late-one' };
    const begun = request(`${url}${LEADS}`, { method: 'POST', headers });
    const answered = once(begun, 'response');
    begun.write('{');
    const counted = async () =>
      (await fetch(`${url}${LEADS}`, { headers: { authorization: `Bearer ${secret}` } })).status;
    expect(await counted()).toBe(200);

    gateway.child.kill('SIGTERM');

    const [response] = await answered;
    expect([response.statusCode, response.headers['x-request-id']]).toEqual([408, 'the-late-one']);
    expect(await gateway.ended()).toBe(0);
    expect(gateway.output()).toMatch(/"requestId":"the-late-one".*"status":408/);
  });
});
