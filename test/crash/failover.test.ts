import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { describeWithMongoServer, startWirePair } from '../support/mongodb.ts';
import { createChance, seedFrom } from '../tools/chance.ts';
import { testSize } from '../tools/test-size.ts';
import { connectClients, deployApart } from './deployment.ts';
import { created, startLoad } from './load.ts';
import { Rounds } from './promises-kept.ts';

/** The number of times a standby of the database takes over. */
const FAILOVERS = testSize('FAILOVERS', { usual: 1, soak: 10 });

/** The seed of the requests and of the time at which the primary is killed. */
const SEED = seedFrom('FAILOVER_SEED');

vi.setConfig({ testTimeout: 600_000 + FAILOVERS * 30_000 });

/** How long the load runs before a kill; milliseconds. */
const [SOONEST_MS, LATEST_MS] = [200, 1500];

/** The time until the failure of the primary is detected; milliseconds. */
const [NOTICED_SOONEST_MS, NOTICED_LATEST_MS] = [50, 3000];

/**
 * The number of leads that must be created after the failover before the load ends, so that callers from before it
 * get to continue.
 */
const CREATED_AFTER = 20;

// @proves crashes-1
describeWithMongoServer('a standby of the database', () => {
  test('a standby that takes over has every acknowledged lead once, without restarts', async () => {
    const database = await startWirePair();
    onTestFinished(() => database.stop());
    const deployment = await deployApart({ DATABASE_URL: `${database.url}test-${randomUUID()}` });
    const { gatewayUrl, process } = deployment;
    const core = connectClients(deployment);
    const chance = createChance(SEED);
    const rounds = new Rounds(gatewayUrl, core);
    for (let failover = 1; failover <= FAILOVERS; failover += 1) {
      const own = chance.branch();
      if (failover > 1) await database.addStandby();
      const load = await startLoad(gatewayUrl, core, own.branch());
      try {
        await sleep(own.between(SOONEST_MS, LATEST_MS));
        await database.killPrimary();
        await sleep(own.between(NOTICED_SOONEST_MS, NOTICED_LATEST_MS));
        await database.promote();
        await created(load, CREATED_AFTER);
      } finally {
        await load.stop();
      }
      await rounds.expectKept(load.ledger, `FAILOVER_SEED=${SEED}, failover ${failover}`);
    }
    await rounds.expectAllKept();
    for (const part of ['core', 'gateway']) expect(process(part).child.exitCode, part).toBeNull();
  });
});
