import { createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/health/v1/health_pb.ts';
import { wrongWith } from '../support/doctor.ts';
import { CORE_TOKEN, startTestCore } from '../support/grpc.ts';
import { run } from '../tools/processes.ts';
import { aGateway } from './a-gateway.ts';

async function aCore(host: string) {
  const core = await startTestCore({ CORE_HOST: host });
  onTestFinished(() => core.stop());
  return core;
}

/** Addresses to listen on, and the host in the URL by which this machine reaches each. */
const ADDRESSES = [
  ['127.0.0.2', '127.0.0.2'],
  ['0.0.0.0', '127.0.0.1'],
  ['::', '[::1]'],
] as const;

describe.each(ADDRESSES)('a process that listens on %s', (host, inUrl) => {
  test('a process is reached by a gateway, doctor, and Connect-ES in each protocol', async () => {
    const core = await aCore(host);
    expect(core.url).toBe(`http://${inUrl}:${core.port}`);

    const gateway = await aGateway(core.url);
    await expect.poll(async () => (await fetch(`${gateway.url}/readyz`)).status).toBe(200);
    expect(await wrongWith('core', 'gateway', { CORE_URL: core.url, CORE_TOKEN })).toEqual([]);
    const options = { baseUrl: core.url, httpVersion: '2' } as const;
    const transports = [
      createConnectTransport(options),
      createGrpcWebTransport(options),
      createGrpcTransport({ baseUrl: core.url }),
    ];
    for (const transport of transports) {
      expect((await createClient(Health, transport).check({})).status).toBe(Status.SERVING);
    }
  });

  test("the container's health check succeeds, and fails where nothing listens", async () => {
    const core = await aCore(host);
    const gateway = await aGateway(core.url, { GATEWAY_HOST: host });
    const checks = [
      ['src/check-health.ts', 'CORE', core.port],
      ['gateway/check-health.ts', 'GATEWAY', new URL(gateway.url).port],
    ] as const;
    for (const [file, part, port] of checks) {
      const env = { [`${part}_HOST`]: host, [`${part}_PORT`]: `${port}` };
      await expect.poll(() => run(file, { env }).ended(), { message: file }).toBe(0);
      expect([file, await run(file, { env: { ...env, [`${part}_PORT`]: '1' } }).ended()]).toEqual([file, 1]);
    }
  });
});
