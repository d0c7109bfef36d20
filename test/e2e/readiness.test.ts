import { once } from 'node:events';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../../gateway/app.ts';
import { readGatewayConfig } from '../../gateway/config.ts';
import { times } from '../support/builders.ts';
import { addressOf, run, temporaryFolder } from '../support/processes.ts';

const SILENT = { GATEWAY_PORT: '0', LOG_LEVEL: 'silent', SHUTDOWN_DRAIN_MS: '0' };

/** A core that only knows whether it serves, and counts how often it is asked. */
async function aCountingCore() {
  let asked = 0;
  const server = createServer((request, response) => {
    if (request.url !== '/grpc.health.v1.Health/Check') return response.writeHead(404).end();
    asked += 1;
    return response.writeHead(200, { 'content-type': 'application/proto' }).end(Buffer.of(0x08, 1));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked: () => asked };
}

test('however many ask a gateway whether it is ready, the core is asked once a second', async () => {
  const core = await aCountingCore();
  const gateway = await startGateway(
    readGatewayConfig({ ...SILENT, CORE_URL: core.url, GATEWAY_METRICS_ADDRESS: '127.0.0.1:0' }),
  );
  onTestFinished(() => gateway.stop());
  let asked = 0;
  const until = performance.now() + 1500;
  while (performance.now() < until) {
    const answers = await Promise.all(times(10, () => fetch(`${gateway.url}/readyz`)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    // Whoever reads the metrics is told the same.
    expect(await (await fetch(gateway.metricsUrl as string)).text()).toContain('lead_intake_gateway_core_up 1');
    asked += answers.length;
  }
  expect(asked).toBeGreaterThan(30);
  expect(core.asked()).toBeGreaterThan(0);
  expect(core.asked()).toBeLessThanOrEqual(3);
});

test('a gateway that stops is not ready from that moment on, whatever the last look has found', async () => {
  const core = await aCountingCore();
  const gateway = await startGateway(readGatewayConfig({ ...SILENT, SHUTDOWN_DRAIN_MS: '500', CORE_URL: core.url }));
  expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);

  const stopped = gateway.stop();

  const answer = await fetch(`${gateway.url}/readyz`);
  expect(await answer.json()).toMatchObject({ status: 503, detail: 'Not ready: the gateway is stopping.' });
  await stopped;
});

test('a core whose database is away says why in its log at once, without the credentials of its address', async () => {
  const core = run('src/main.ts', { env: { DATABASE_URL: 'mongodb://operator:not-to-be-seen@127.0.0.1:1/leads' } });
  await addressOf(core);
  await core.printed(/"level":40,.*"reason":"[^"]{5,}".*not ready: the database is not there/);
  expect(core.output()).not.toContain('not-to-be-seen');
});

test('a gateway whose core is away says why in its log at once, and nothing while it is there', async () => {
  const core = await aCountingCore();
  const away = run('gateway/main.ts', { env: { CORE_URL: 'http://127.0.0.1:1' } });
  await away.printed(/"level":40,.*"reason":"[^"]*ECONNREFUSED[^"]*".*not ready: the core is not there/);

  const there = run('gateway/main.ts', { env: { CORE_URL: core.url } });
  const url = await addressOf(there);
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  expect(there.output()).not.toContain('not ready');
});

test('a gateway whose token the core does not take is not ready, and says why; with the right one it is', async () => {
  const CORE_TOKEN = 'the token of the core, as long as it needs';
  const core = run('src/main.ts', { env: { DATABASE_URL: `sqlite:${temporaryFolder()}/leads.db`, CORE_TOKEN } });
  const CORE_URL = await addressOf(core);
  const other = run('gateway/main.ts', { env: { CORE_URL, CORE_TOKEN: 'another token, and as long as it needs' } });
  const right = run('gateway/main.ts', { env: { CORE_URL, CORE_TOKEN } });

  expect((await fetch(`${await addressOf(other)}/readyz`)).status).toBe(503);
  await other.printed(/"level":40,.*"reason":"it does not take this CORE_TOKEN.*not ready: the core is not there/);
  expect((await fetch(`${await addressOf(right)}/readyz`)).status).toBe(200);
  expect(right.output()).not.toContain('not ready');
  // The core has no line of each look.
  expect(core.output()).not.toContain('CALLER_UNAUTHENTICATED');
});
