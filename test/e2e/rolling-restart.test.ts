import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type Balancer, isCoreServing, isGatewayReady, startBalancer } from '../support/balancer.ts';
import { times } from '../support/builders.ts';
import { allLeads, arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { addressOf, type RunningProcess, run, temporaryFolder } from '../support/processes.ts';
import { aCapture, LEADS } from '../support/service.ts';

vi.setConfig({ testTimeout: 120_000 });

/** The balancer's interval of readiness probes; milliseconds. A stopping process keeps serving for much longer. */
const PROBE_MS = 25;
const DRAIN_MS = 1500;

const CALLERS = 8;

/** The number of requests served between two restarts. */
const SERVED_BETWEEN = 100;

test('two gateways and two cores are restarted one by one, and no request fails', async () => {
  const env = { DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}`, SHUTDOWN_DRAIN_MS: `${DRAIN_MS}` };
  const startCore = (port = '0') => run('src/main.ts', { env: { ...env, CORE_PORT: port } });
  const cores = times(2, () => startCore());
  const coreUrls = await Promise.all(cores.map(addressOf));
  const toCores = await startBalancer(coreUrls, isCoreServing, PROBE_MS);
  onTestFinished(() => toCores.stop());
  const startGateway = (port = '0') =>
    run('gateway/main.ts', {
      env: { ...env, GATEWAY_PORT: port, CORE_URL: toCores.url, QUOTA_LIMIT: '1000000000' },
    });
  const gateways = times(2, () => startGateway());
  const gatewayUrls = await Promise.all(gateways.map(addressOf));
  const toGateways = await startBalancer(gatewayUrls, isGatewayReady, PROBE_MS);
  onTestFinished(() => toGateways.stop());
  const clients = connectToCore(toCores.url);
  onTestFinished(() => clients.close());
  const { studioId, secret } = await arrangeStudio(clients);

  let isOver = false;
  let served = 0;
  let repeated = 0;
  const failures: unknown[] = [];
  const callers = times(CALLERS, async () => {
    while (!isOver) {
      try {
        const response = await create(toGateways.url, secret, () => {
          repeated += 1;
        });
        const text = await response.text();
        if (response.status === 201) served += 1;
        else failures.push(text);
      } catch (error) {
        failures.push(error);
      }
    }
  });
  const untilMoreServed = async () => {
    const before = served;
    await vi.waitUntil(() => served >= before + SERVED_BETWEEN, { timeout: 20_000 });
  };
  try {
    for (const { balancer, url, running, start } of [
      ...gatewayUrls.map((url, index) => step(toGateways, url, gateways[index], startGateway)),
      ...coreUrls.map((url, index) => step(toCores, url, cores[index], startCore)),
    ]) {
      await untilMoreServed();
      running.child.kill('SIGTERM');
      expect(await running.ended()).toBe(0);
      start(new URL(url).port);
      await vi.waitUntil(() => balancer.isUsed(url), { timeout: 20_000 });
    }
    await untilMoreServed();
  } finally {
    isOver = true;
    await Promise.all(callers);
  }
  expect(failures).toEqual([]);
  expect(repeated).toBeLessThanOrEqual(2);
  expect(await allLeads(clients, studioId)).toHaveLength(served);
});

/** A server that the test stops and starts again at the same address. */
function step(
  balancer: Balancer,
  url: string,
  running: RunningProcess | undefined,
  start: (port: string) => RunningProcess,
) {
  if (!running) throw new Error(`no server runs at ${url}`);
  return { balancer, url, running, start };
}

/**
 * Creates a lead; retries when the connection was closed. The gateway closes idle keep-alive connections when it stops, and a
 * request may be sent at that moment. HTTP leaves the retry to the client.
 */
function create(gatewayUrl: string, secret: string, onRepeated: () => void): Promise<Response> {
  const idempotencyKey = randomUUID();
  const body = JSON.stringify(aCapture());
  const send = () =>
    fetch(`${gatewayUrl}${LEADS}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
        'idempotency-key': idempotencyKey,
      },
      body,
    });
  return send().catch((error) => {
    if (error.cause?.code !== 'UND_ERR_SOCKET') throw error;
    onRepeated();
    return send();
  });
}
