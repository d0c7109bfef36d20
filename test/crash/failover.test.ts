import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { describeWithMongoServer, startWirePair } from '../support/mongodb.ts';
import { startRedisWithSentinel } from '../support/redis-sentinel.ts';
import { describeWithRedisServer } from '../support/servers.ts';
import { sizeOf } from '../support/size-of.ts';
import { type Chance, chanceOf, seedFrom } from './chance.ts';
import { clientsOf, type Deployment, deployApart, newSqliteUrl } from './deployment.ts';
import { created, type Load, startLoad } from './load.ts';
import { Rounds } from './promises-kept.ts';

/** The number of times a standby of the database takes over. */
const FAILOVERS = sizeOf('FAILOVERS', { usual: 1, soak: 20 });

/** The seed of the requests and of the time at which the primary is killed. */
const SEED = seedFrom('FAILOVER_SEED');

vi.setConfig({ testTimeout: 60_000 + FAILOVERS * 30_000 });

/** How long the load runs before a kill; milliseconds. */
const [SOONEST_MS, LATEST_MS] = [200, 1500];

/** The time until the failure of the primary is detected; milliseconds. */
const [NOTICED_SOONEST_MS, NOTICED_LATEST_MS] = [50, 3000];

/**
 * The number of leads that must be created after the failover before the load ends, so that callers from before it
 * get to continue.
 */
const CREATED_AFTER = 20;

/** Enough that no request from before the failure is still in flight. */
const MANY_REFUSED = 30;

// @proves crashes-2
describeWithMongoServer('a standby of the database', () => {
  test('that takes over has every acknowledged lead once, without a restart of core or gateway', async () => {
    const database = await startWirePair();
    onTestFinished(() => database.stop());
    const deployment = await deployApart({ DATABASE_URL: `${database.url}test-${randomUUID()}` });
    await expectPromisesKept(deployment, FAILOVERS, {
      async failOver(load, chance, name) {
        await database.killPrimary();
        const killed = performance.now();
        await sleep(chance.between(NOTICED_SOONEST_MS, NOTICED_LATEST_MS));
        await database.promote();
        const promoted = performance.now();
        await created(load, 1);
        const [downMs, recoveredMs] = [promoted - killed, performance.now() - promoted].map(Math.round);
        console.info(`${name}: no primary for ${downMs} ms; a lead was created ${recoveredMs} ms after that`);
      },
      addStandby: () => database.addStandby(),
    });
  });
});

// @proves quota-11
describeWithRedisServer('a replica of Redis', () => {
  test('that takes over serves the same gateway; until then no refused request is written', async () => {
    const redis = await startRedisWithSentinel();
    onTestFinished(() => redis.stop());
    const deployment = await deployApart({ DATABASE_URL: newSqliteUrl(), REDIS_URL: redis.url });
    await expectPromisesKept(deployment, Math.ceil(FAILOVERS / 2), {
      async failOver(load, _, name) {
        await redis.killPrimary();
        const killed = performance.now();
        const refused = () =>
          load.ledger.requests.filter(({ answers }) => answers.at(-1)?.code === 'integration_rate_unavailable').length;
        // Requests that were counted before the failure may still succeed.
        await vi.waitUntil(() => refused() >= MANY_REFUSED, { timeout: 20_000, interval: 5 });
        await created(load, 1);
        console.info(`${name}: a lead was created ${Math.round(performance.now() - killed)} ms after Redis was killed`);
      },
      addStandby: () => redis.addReplica(),
    });
  });
});

/** A replicated database. */
interface Replicated {
  /** Makes the primary fail and the standby take over; waits until leads are created again. */
  failOver(load: Load, chance: Chance, name: string): Promise<void>;
  /** Adds a standby to the new primary. */
  addStandby(): Promise<void>;
}

/** Makes primaries fail under load, and expects the processes, which are not restarted, to keep every promise. */
async function expectPromisesKept(
  deployment: Deployment,
  failovers: number,
  { failOver, addStandby }: Replicated,
): Promise<void> {
  const { gatewayUrl, process } = deployment;
  const core = clientsOf(deployment);
  const chance = chanceOf(SEED);
  const rounds = new Rounds(gatewayUrl, core);
  for (let failover = 1; failover <= failovers; failover += 1) {
    const name = `FAILOVER_SEED=${SEED}, failover ${failover}`;
    const own = chance.branch();
    if (failover > 1) await addStandby();
    const load = await startLoad(gatewayUrl, core, own.branch());
    try {
      await sleep(own.between(SOONEST_MS, LATEST_MS));
      await failOver(load, own, name);
      await created(load, CREATED_AFTER);
    } finally {
      await load.stop();
    }
    await rounds.expectKept(load.ledger, name);
  }
  await rounds.expectAllKept();
  for (const part of ['core', 'gateway']) expect(process(part).child.exitCode, part).toBeNull();
}
