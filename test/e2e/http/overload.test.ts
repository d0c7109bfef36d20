import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { times } from '../../support/builders.ts';
import { lines } from '../../support/raw-http.ts';
import { anotherGateway, aService, LEADS } from '../../support/service.ts';
import { startProxy } from '../../tools/tcp-proxy.ts';

const service = aService();

/** More callers than may wait for the core before a gateway sheds load. */
const CALLERS = 1500;

/** The pipelined requests of each caller, which the gateway answers one after the other. */
const REQUESTS = 20;

test('an overloaded gateway sheds requests after routing them but before checking their keys', {
  tags: ['7.overload', '7.order'],
}, async () => {
  const { hostname, port } = new URL(service.coreUrl);
  const proxy = await startProxy(hostname, Number(port));
  onTestFinished(() => proxy.stop());
  const settings = { CORE_URL: `http://127.0.0.1:${proxy.port}`, QUOTA_LIMIT: '1000000' };
  const url = await anotherGateway(service, { gateway: settings });
  const { secret } = await service.aStudioWithKey();
  const headers = { authorization: `Bearer ${secret}` };
  const path = `${url}${LEADS}/0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c11`;
  expect((await fetch(path, { headers })).status).toBe(404);
  proxy.silence();
  const { port: gatewayPort, pathname } = new URL(path);
  const request = lines(`GET ${pathname} HTTP/1.1`, 'Host: a', `Authorization: ${headers.authorization}`, '');
  const callers = times(CALLERS, () => {
    // Each answer is followed by another request, until the test has seen a refusal.
    const socket = connect(Number(gatewayPort));
    socket.write(request.repeat(REQUESTS));
    return socket.on('error', () => {}).on('data', () => socket.write(request));
  });

  const withoutKey = async () => {
    const response = await fetch(path);
    return { status: response.status, ...((await response.json()) as { code: string; detail: string }) };
  };
  await expect.poll(withoutKey).toMatchObject({
    status: 503,
    code: 'integration_unavailable',
    detail: expect.stringContaining('nothing was written'),
  });
  expect((await fetch(`${url}/v1/nothing`)).status).toBe(404);

  for (const socket of callers) socket.destroy();
  proxy.heal();
  await expect.poll(withoutKey).toMatchObject({ status: 401 });
});
