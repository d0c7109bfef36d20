import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { connectToCore } from '../support/core-clients.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { temporaryFolder } from '../support/processes.ts';
import { chanceOf } from './chance.ts';
import { deployApart } from './deployment.ts';
import { startLoad } from './load.ts';
import { brokenPromises } from './promises-kept.ts';

vi.setConfig({ testTimeout: 180_000 });

/** Longer than the gateway's deadlines, which are 5 s for a request and 12 s for the connection; milliseconds. */
const LONGER_THAN_ALL_DEADLINES_MS = 13_000;

describeWithMongo('a core that stands still', (mongoUrl) => {
  test('longer than everybody waits, and goes on: nothing is doubled, all works by itself, on either database', async () => {
    const databases = [
      `sqlite:${join(temporaryFolder(), 'leads.db')}`,
      new URL(`/test-${randomUUID()}`, mongoUrl()).href,
    ];
    // Concurrently, because most of the time is spent waiting.
    await Promise.all(databases.map(expectRecovery));
  });
});

async function expectRecovery(databaseUrl: string): Promise<void> {
  const deployment = await deployApart({ DATABASE_URL: databaseUrl });
  const { gatewayUrl, coreUrl } = deployment;
  const clients = connectToCore(coreUrl);
  onTestFinished(() => clients.close());
  const load = await startLoad(gatewayUrl, clients, chanceOf(1));
  await vi.waitUntil(() => load.created() >= 50, { timeout: 30_000 });

  const core = deployment.process('core').child;
  core.kill('SIGSTOP');
  await sleep(LONGER_THAN_ALL_DEADLINES_MS);
  core.kill('SIGCONT');
  await deployment.serves();

  const before = load.created();
  await vi.waitUntil(() => load.created() >= before + 50, { timeout: 30_000 });
  const ledger = await load.stop();
  const codes = new Set(ledger.requests.flatMap(({ answers }) => answers.map((answer) => answer?.code)));
  expect(codes).toContain('integration_unavailable');
  expect((await brokenPromises(gatewayUrl, clients, ledger)).broken).toEqual([]);
}
