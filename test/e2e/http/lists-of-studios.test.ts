import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { times } from '../../support/builders.ts';
import { aCapture, anotherGateway, aSeparateService, LEADS } from '../../support/service.ts';
import { startProxy } from '../../support/tcp-proxy.ts';

/** More lists than may wait for the core. */
const CROWD = 1500;
const MAX_WAITING = 1024;

// @proves bounds-18
test('a studio that lists as much as it can leaves the lists of another one alone', async () => {
  const service = await aSeparateService();
  const proxy = await startProxy('127.0.0.1', Number(new URL(service.coreUrl).port));
  onTestFinished(() => proxy.stop());
  const gateway = await anotherGateway(service, {
    gateway: { CORE_URL: `http://127.0.0.1:${proxy.port}`, QUOTA_LIMIT: '1000000' },
  });
  const [{ secret: busy }, { secret: other }] = [await service.aStudioWithKey(), await service.aStudioWithKey()];
  const list = async (secret: string) => {
    const response = await fetch(`${gateway}${LEADS}?limit=100`, { headers: { authorization: `Bearer ${secret}` } });
    await response.arrayBuffer();
    return response.status;
  };
  await service.post(other, aCapture());
  expect([await list(busy), await list(other)]).toEqual([200, 200]);

  proxy.silence();
  let refused = 0;
  const crowd = times(CROWD, async () => {
    const status = await list(busy);
    if (status === 503) refused += 1;
    return status;
  });
  // Until all others wait.
  await expect.poll(() => refused, { interval: 10 }).toBeGreaterThanOrEqual(CROWD - MAX_WAITING);
  const single = times(9, () => list(other));
  await sleep(300);
  proxy.heal();

  expect(await Promise.all(single)).toEqual(times(9, () => 200));
  await Promise.all(crowd);
});
