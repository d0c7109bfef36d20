import { once } from 'node:events';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../../gateway/app.ts';
import { readGatewayConfig } from '../../gateway/config.ts';
import { times } from '../support/builders.ts';

const SILENT = { GATEWAY_PORT: '0', LOG_LEVEL: 'silent', SHUTDOWN_DRAIN_MS: '0' };

/** Starts a core that implements only the health check, and counts its calls. */
async function aCountingCore() {
  let calls = 0;
  const server = createServer((request, response) => {
    if (request.url !== '/grpc.health.v1.Health/Check') return response.writeHead(404).end();
    calls += 1;
    return response.writeHead(200, { 'content-type': 'application/proto' }).end(Buffer.of(0x08, 1));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls: () => calls };
}

// @proves crashes-15 bounds-61
test('any number of readiness probes of a gateway check the core once a second', async () => {
  const core = await aCountingCore();
  const begun = performance.now();
  const gateway = await startGateway(
    readGatewayConfig({ ...SILENT, CORE_URL: core.url, GATEWAY_METRICS_ADDRESS: '127.0.0.1:0' }),
  );
  onTestFinished(() => gateway.stop());
  const ready = async () => (await fetch(`${gateway.url}/readyz`)).status;
  const metrics = async () => (await fetch(gateway.metricsUrl as string)).text();
  for (let probes = 0; core.calls() < 2 || probes <= 30; probes += 10)
    await Promise.all([...times(10, ready), metrics()]);
  expect(core.calls()).toBeLessThanOrEqual(2 + (performance.now() - begun) / 1000);
  await expect.poll(ready).toBe(200);
  await expect.poll(metrics).toContain('lead_intake_gateway_core_up 1');
});
