import { expect, onTestFinished, test } from 'vitest';
import { newKeySecret } from '../../../common/rules/key-secret.ts';
import { times } from '../../support/builders.ts';
import { anotherGateway, aService, LEADS } from '../../support/service.ts';
import { startProxy } from '../../support/tcp-proxy.ts';

const service = aService();

/** More callers than may wait for the core before a gateway refuses others. */
const CALLERS = 1100;

test('while too many requests wait for the core, others are refused before their keys are read, after their paths', {
  tags: ['7.overload', '7.order'],
}, async () => {
  const { hostname, port } = new URL(service.coreUrl);
  const proxy = await startProxy(hostname, Number(port));
  onTestFinished(() => proxy.stop());
  const url = await anotherGateway(service, { gateway: { CORE_URL: `http://127.0.0.1:${proxy.port}` } });
  proxy.silence();
  let isOver = false;
  const callers = times(CALLERS, async () => {
    // Unknown keys, all different: lookups of the same key would be coalesced.
    const authorization = `Bearer ${newKeySecret()}`;
    while (!isOver) await (await fetch(url + LEADS, { headers: { authorization } })).arrayBuffer();
  });

  const withoutKey = async () => {
    const response = await fetch(url + LEADS);
    return { status: response.status, ...((await response.json()) as { code: string; detail: string }) };
  };
  await expect.poll(withoutKey).toMatchObject({
    status: 503,
    code: 'integration_unavailable',
    detail: expect.stringContaining('nothing was written'),
  });
  expect((await fetch(`${url}/v1/nothing`)).status).toBe(404);

  isOver = true;
  proxy.heal();
  await Promise.all(callers);
  await expect.poll(withoutKey).toMatchObject({ status: 401 });
});
