import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { times } from '../support/builders.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { describeWithHaproxy, startHaproxy } from '../support/haproxy.ts';
import { aCapture, CORE_TOKEN, createAt, LEADS } from '../support/service.ts';
import { aSmallDisk, describeWithSmallDisks } from '../support/small-disk.ts';
import { readAddress, run, temporaryFolder } from '../tools/processes.ts';
import { aRedis, describeWithRedisServer, freePort } from '../tools/servers.ts';

/** How long probes may take to notice a change on a busy machine; milliseconds. */
const NOTICED_WITHIN_MS = 30_000;

/** Starts two healthy gateways and a core behind the HAProxy of the guide. */
async function behindHaproxy(
  folder: string,
  settings: Readonly<Record<string, string>>,
  within: readonly string[] = [],
) {
  const DATABASE_URL = `sqlite:${join(folder, 'leads.db')}`;
  const [ports, corePorts] = [
    [await freePort(), await freePort()],
    [await freePort(), await freePort()],
  ];
  const haproxy = await startHaproxy(ports, corePorts);
  // A short maximum age makes gateways reconnect constantly. Nothing listens at the address of the second core.
  const coreEnv = { CORE_PORT: `${corePorts[0]}`, CORE_CONNECTION_MAX_AGE_MS: '1000' };
  await readAddress(run('src/main.ts', { env: { DATABASE_URL, CORE_TOKEN, ...coreEnv }, within }));
  const CORE_URL = haproxy.coreUrl;
  const gateways = ports.map((port) =>
    run('gateway/main.ts', {
      env: {
        GATEWAY_PORT: `${port}`,
        CORE_URL,
        CORE_TOKEN,
        TRUSTED_PROXIES: '127.0.0.1',
        QUOTA_LIMIT: '1000000',
        ...settings,
      },
    }),
  );
  await Promise.all(gateways.map(readAddress));
  const untilAll = (state: RegExp, all = ports) =>
    Promise.all(
      all.map((port) => expect.poll(() => haproxy.readState(port), { timeout: NOTICED_WITHIN_MS }).toMatch(state)),
    );
  await untilAll(/^UP$/, [...ports, ...corePorts.slice(0, 1)]);
  const clients = connectToCore(CORE_URL, CORE_TOKEN);
  onTestFinished(() => clients.close());
  const { secret } = await arrangeStudio(clients);
  const list = (headers: Record<string, string> = { authorization: `Bearer ${secret}` }) =>
    fetch(haproxy.apiUrl + LEADS, { headers });
  return { url: haproxy.apiUrl, gateways, secret, list, untilAll, corePorts };
}

describeWithHaproxy('behind HAProxy, while no gateway is ready,', () => {
  // @proves docs-1 crashes-24
  describeWithRedisServer('because Redis is gone,', () => {
    test("callers get a gateway's response with its request id while Redis is down", async () => {
      const redis = await aRedis();
      const service = await behindHaproxy(temporaryFolder(), { REDIS_URL: redis.url });
      expect((await service.list()).status).toBe(200);
      await redis.kill();
      await service.untilAll(/^DOWN/);
      for (const response of [await service.list(), await createAt(service.url, service.secret)]) {
        expect({ status: response.status, type: response.headers.get('content-type') }).toEqual({
          status: 503,
          type: expect.stringContaining('application/problem+json'),
        });
        expect(response.headers.get('x-request-id')).toMatch(/.{8}/);
        expect(await response.json()).toMatchObject({ code: 'integration_rate_unavailable' });
      }
      // Once one of the two gateways is gone, the other responds.
      await service.gateways[0]?.kill();
      for (const _ of times(4, () => 0)) expect((await service.list()).headers.get('x-request-id')).toMatch(/.{8}/);
      await redis.restart();
      await expect.poll(async () => (await service.list()).status, { timeout: NOTICED_WITHIN_MS }).toBe(200);
    });
  });

  // @proves crashes-31
  describeWithSmallDisks('because the disk of SQLite is full,', () => {
    test('reads continue through HAProxy while the disk of SQLite is full', async () => {
      const disk = await aSmallDisk(4096);
      const service = await behindHaproxy(disk.folder, {}, disk.within);
      disk.fill();
      const create = async () =>
        (await createAt(service.url, service.secret, {}, aCapture({ note: 'x'.repeat(2000) }))).status;
      await expect.poll(create, { timeout: NOTICED_WITHIN_MS }).toBe(503);
      await service.untilAll(/^DOWN/);
      await service.untilAll(/^DOWN/, service.corePorts);
      // This is longer than a connection to the core lasts.
      const until = performance.now() + 4000;
      while (performance.now() < until) {
        expect((await service.list()).status).toBe(200);
        await sleep(20);
      }
      expect(await create()).toBe(503);
    });
  });
});

describeWithHaproxy('behind HAProxy', () => {
  // @proves docs-1 crashes-24
  test('a client cannot choose the address that the log names', async () => {
    const service = await behindHaproxy(temporaryFolder(), { LOG_CLIENT_ADDRESSES: 'whole' });
    const guess = { authorization: `Bearer ${service.secret.slice(0, -1)}`, 'x-forwarded-for': '203.0.113.77' };
    expect((await service.list(guess)).status).toBe(401);
    const logs = () => service.gateways.map((gateway) => gateway.output()).join('');
    await expect.poll(logs).toMatch(/integration_key_invalid/);
    expect(logs()).toContain('127.0.0.1');
    expect(logs()).not.toContain('203.0.113.77');
  });
});
