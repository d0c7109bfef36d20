import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startCore } from '../../src/app.ts';
import { readCoreConfig } from '../../src/config.ts';
import { times } from '../support/builders.ts';
import { aCapture, CORE_TOKEN, startService } from '../support/service.ts';

/** Passes connections on to one of several servers, as a balancer does; those that stand stay where they are. */
async function startBalancer() {
  let target: URL;
  const listener = createServer({ noDelay: true }, (client) => {
    const server = connect({ port: Number(target.port), host: target.hostname, noDelay: true });
    client.pipe(server).pipe(client);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
    }
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    turnTo(url: string) {
      target = new URL(url);
    },
    stop: () => listener.close(),
  };
}

test('cores are restarted one after the other under load, and no request fails', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  const core = { DATABASE_URL: `sqlite:${join(folder, 'leads.db')}` };
  const balancer = await startBalancer();
  const service = await startService({ core, gateway: { CORE_URL: balancer.url } });
  const startAnother = () =>
    startCore(readCoreConfig({ ...core, CORE_TOKEN, CORE_PORT: '0', LOG_LEVEL: 'silent', SHUTDOWN_DRAIN_MS: '0' }));
  let current = await startAnother();
  balancer.turnTo(current.url);
  const studio = await service.aStudioWithKey();

  let isOver = false;
  const statuses: Record<number, number> = {};
  const callers = times(16, async () => {
    while (!isOver) {
      const { status } = await service.post(studio.secret, aCapture());
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  });
  for (let restart = 0; restart < 10; restart += 1) {
    const next = await startAnother();
    const before = statuses[201] ?? 0;
    while ((statuses[201] ?? 0) < before + 50) await new Promise((resolve) => setTimeout(resolve, 5));
    balancer.turnTo(next.url);
    await current.stop();
    current = next;
  }
  isOver = true;
  await Promise.all(callers);

  expect(Object.keys(statuses)).toEqual(['201']);
  expect(await service.countLeads(studio.studioId)).toBe(statuses[201]);

  await service.dispose();
  await current.stop();
  balancer.stop();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);
