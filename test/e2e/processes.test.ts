import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { addressOf, run, temporaryFolder } from '../support/processes.ts';

/** A well-formed secret that was never issued: 32 zero bytes and their checksum. */
const A_SECRET = `lik_${Buffer.concat([Buffer.alloc(32), Buffer.from('190a55ad', 'hex')]).toString('base64url')}`;

const coreSettings = (folder: string) => ({ DATABASE_URL: `sqlite:${join(folder, 'leads.db')}` });

describe('core and gateway as separate processes', () => {
  test('the gateway is ready while the core serves, and reports why it is not ready otherwise', async () => {
    const folder = temporaryFolder();
    const token = { CORE_TOKEN: 'a token of the test, and a long one' };
    const first = run('src/main.ts', { env: { ...coreSettings(folder), ...token } });
    const coreUrl = await addressOf(first);
    const gateway = run('gateway/main.ts', { env: { ...token, CORE_URL: coreUrl } });
    const url = await addressOf(gateway);
    await expect.poll(async () => (await fetch(`${url}/readyz`)).status, { timeout: 10_000 }).toBe(200);

    first.child.kill('SIGTERM');
    expect(await first.ended()).toBe(0);
    await expect.poll(async () => (await fetch(`${url}/readyz`)).status, { timeout: 5000 }).toBe(503);
    const away = await fetch(`${url}/readyz`);
    expect(away.headers.get('content-type')).toBe('application/problem+json');
    expect(await away.json()).toMatchObject({
      code: 'integration_unavailable',
      detail: 'Not ready: the core does not serve.',
    });
    expect((await fetch(`${url}/healthz`)).status).toBe(200);

    const second = run('src/main.ts', {
      env: { ...coreSettings(folder), ...token, CORE_PORT: new URL(coreUrl).port },
    });
    await addressOf(second);
    await expect.poll(async () => (await fetch(`${url}/readyz`)).status, { timeout: 10_000 }).toBe(200);
  });

  test('a gateway with the wrong token responds with 500, not with an error of the caller', async () => {
    const core = run('src/main.ts', {
      env: { ...coreSettings(temporaryFolder()), CORE_TOKEN: 'the right one'.padEnd(32, '.') },
    });
    const gateway = run('gateway/main.ts', {
      env: { CORE_URL: await addressOf(core), CORE_TOKEN: 'the wrong one'.padEnd(32, '.') },
    });
    const url = await addressOf(gateway);

    const authorization = `Bearer ${A_SECRET}`;
    const answer = await fetch(`${url}/v1/integrations/leads`, { headers: { authorization } });

    expect(answer.status).toBe(500);
    expect(await answer.json()).toMatchObject({ code: 'internal_error' });
  });

  test('secrets are read from files too', async () => {
    const folder = temporaryFolder();
    const { writeFileSync } = await import('node:fs');
    writeFileSync(join(folder, 'token'), 'a token that comes from a file, read by both\n');
    const env = { CORE_TOKEN_FILE: join(folder, 'token') };
    const core = run('src/main.ts', { env: { ...coreSettings(folder), ...env } });
    const gateway = run('gateway/main.ts', { env: { ...env, CORE_URL: await addressOf(core) } });

    const url = await addressOf(gateway);
    await expect.poll(async () => (await fetch(`${url}/readyz`)).status, { timeout: 10_000 }).toBe(200);
  });
});

test('the health check of a core ends with status 0 while it serves, and 1 otherwise', async () => {
  const core = run('src/main.ts', { env: coreSettings(temporaryFolder()) });
  const { port } = new URL(await addressOf(core));

  expect(await run('src/check-health.ts', { env: { CORE_PORT: port } }).ended()).toBe(0);
  core.child.kill('SIGTERM');
  await core.ended();
  expect(await run('src/check-health.ts', { env: { CORE_PORT: port } }).ended()).toBe(1);
});

describe('an invalid configuration', () => {
  test.each([
    ['src/main.ts', { CORE_PORT: '70000', DATABASE_URL: 'oracle:x', LOG_LEVEL: 'loud' }],
    ['gateway/main.ts', { GATEWAY_PORT: 'http', QUOTA_LIMIT: '0', REDIS_URL: 'memcached://x', CORE_URL: 'here' }],
  ])('stops %s at start, with all faults listed', async (file, env) => {
    const running = run(file, { env });

    expect(await running.ended()).toBe(1);
    for (const name of Object.keys(env)) expect(running.output()).toContain(`- ${name} must be`);
    expect(running.output()).not.toMatch(/^ +at /m);
  });

  test('of a core that is reachable from other machines, without token or mutual TLS, stops the start', async () => {
    const running = run('src/main.ts', { env: { ...coreSettings(temporaryFolder()), CORE_HOST: '0.0.0.0' } });

    expect(await running.ended()).toBe(1);
    expect(running.output()).toContain('set CORE_CALLERS_FILE, CORE_TOKEN or CORE_TLS_CLIENT_CA_FILE');
  });
});

describe('an orderly stop of the gateway', () => {
  test('first fails readiness and ends keep-alive, keeps serving meanwhile, and is not cut short by a second signal', async () => {
    const core = run('src/main.ts', { env: coreSettings(temporaryFolder()) });
    const gateway = run('gateway/main.ts', {
      env: { CORE_URL: await addressOf(core), SHUTDOWN_DRAIN_MS: '1500' },
    });
    const url = await addressOf(gateway);
    const before = await fetch(`${url}/readyz`);
    expect(before.headers.get('connection')).toBe('keep-alive');

    gateway.child.kill('SIGTERM');
    await expect.poll(async () => (await fetch(`${url}/readyz`)).status, { timeout: 1400 }).toBe(503);
    gateway.child.kill('SIGTERM');
    const during = await fetch(`${url}/healthz`);

    expect(during.status).toBe(200);
    expect(during.headers.get('connection')).toBe('close');
    expect(await gateway.ended()).toBe(0);
  });

  test('may drain for longer than any other deadline, serves until then, and ends with status 0', {
    timeout: 60_000,
  }, async () => {
    const env = { SHUTDOWN_DRAIN_MS: '11000' };
    const core = run('src/main.ts', { env: { ...coreSettings(temporaryFolder()), ...env } });
    const gateway = run('gateway/main.ts', { env: { ...env, CORE_URL: await addressOf(core) } });
    const url = await addressOf(gateway);

    for (const { child } of [core, gateway]) child.kill('SIGTERM');
    const told = performance.now();
    const ends = Promise.all([core.ended(), gateway.ended()]);
    let servedUntil = told;
    for (let isServing = true; isServing; await sleep(100)) {
      // A 401 for this unknown key means that the gateway reached the core.
      const headers = { authorization: `Bearer ${A_SECRET}` };
      const answer = await fetch(`${url}/v1/integrations/leads`, { headers }).catch(() => undefined);
      isServing = answer?.status === 401;
      if (isServing) servedUntil = performance.now();
    }

    expect(await ends).toEqual([0, 0]);
    expect(servedUntil - told).toBeGreaterThan(10_200);
  });

  test('completes a request that has begun to arrive', async () => {
    const core = run('src/main.ts', { env: coreSettings(temporaryFolder()) });
    const gateway = run('gateway/main.ts', { env: { CORE_URL: await addressOf(core) } });
    const url = await addressOf(gateway);
    const begun = request(`${url}/v1/integrations/leads`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', expect: '100-continue' },
    });
    const answered = new Promise<number | undefined>((resolve, reject) => {
      begun.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject);
    });
    await new Promise((resolve) => begun.on('continue', resolve).flushHeaders());

    gateway.child.kill('SIGTERM');
    begun.end('{}');

    expect(await answered).toBe(401);
    expect(await gateway.ended()).toBe(0);
  });
});
