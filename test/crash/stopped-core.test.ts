import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { describeWithMongo } from '../support/mongodb.ts';
import { chanceOf } from './chance.ts';
import { clientsOf, deployApart, newSqliteUrl } from './deployment.ts';
import { created, startLoad } from './load.ts';
import { brokenPromises } from './promises-kept.ts';

/** Longer than the gateway's deadlines, which are 5 s for a request and 12 s for the connection; milliseconds. */
const LONGER_THAN_ALL_DEADLINES_MS = 13_000;

// @proves crashes-6
describeWithMongo('a core that is suspended', (mongoUrl) => {
  test('beyond all deadlines, and resumes, makes no duplicate and recovers by itself, on either database', async () => {
    const databases = [newSqliteUrl(), new URL(`/test-${randomUUID()}`, mongoUrl()).href];
    // Concurrently, because most of the time is spent waiting.
    await Promise.all(databases.map(expectRecovery));
  });
});

async function expectRecovery(databaseUrl: string): Promise<void> {
  const deployment = await deployApart({ DATABASE_URL: databaseUrl });
  const { gatewayUrl } = deployment;
  const clients = clientsOf(deployment);
  const load = await startLoad(gatewayUrl, clients, chanceOf(1));
  await created(load, 50);

  const core = deployment.process('core').child;
  core.kill('SIGSTOP');
  await sleep(LONGER_THAN_ALL_DEADLINES_MS);
  core.kill('SIGCONT');
  await deployment.serves();

  await created(load, 50);
  const ledger = await load.stop();
  const codes = new Set(ledger.requests.flatMap(({ answers }) => answers.map((answer) => answer?.code)));
  expect(codes).toContain('integration_unavailable');
  expect((await brokenPromises(gatewayUrl, clients, ledger)).broken).toEqual([]);
}
