import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { describeWithMongoServer } from '../support/mongodb.ts';
import { type Chance, createChance, seedFrom } from '../tools/chance.ts';
import { aRedis, describeWithRedisServer } from '../tools/servers.ts';
import { testSize } from '../tools/test-size.ts';
import { aMongoServer, connectClients, type Deployment, deployApart, newSqliteUrl, type Server } from './deployment.ts';
import { created, type Ledger, startLoad } from './load.ts';
import { brokenPromises, Rounds } from './promises-kept.ts';

/** The total number of kills in this file. */
const KILLS = testSize('CRASH_KILLS', { usual: 3, soak: 60 });

/** The seed of the requests, and of the time and target of each kill. */
const SEED = seedFrom('CRASH_SEED');

vi.setConfig({ testTimeout: 600_000 + KILLS * 30_000 });

/** How long the load runs before a kill; milliseconds. */
const [SOONEST_MS, LATEST_MS] = [50, 900];

/**
 * The number of leads that must be created after a crash before the load ends, so that callers from before it get to
 * continue.
 */
const CREATED_AFTER = 20;

// @proves crashes-1
describeWithRedisServer('kills of any part of a deployment', () => {
  test('acknowledged leads exist once after kills of core, gateway and Redis on SQLite', async () => {
    const redis = await aRedisServer();
    const settings = { DATABASE_URL: newSqliteUrl(), REDIS_URL: redis.url };
    const deployment = await deployApart(settings, { redis });
    await expectPromisesKept(deployment, ['core', 'gateway', 'redis', 'core and gateway'], 0.5);
  });

  describeWithMongoServer('on MongoDB', () => {
    test('acknowledged leads exist once after kills of the database, core, gateway and Redis', async () => {
      const redis = await aRedisServer();
      const { server: database, databaseUrl } = await aMongoServer();
      const settings = { DATABASE_URL: databaseUrl, REDIS_URL: redis.url };
      const deployment = await deployApart(settings, { redis, database });
      const parts = [
        'database',
        'core',
        'gateway',
        'database and core',
        'redis',
        'database and core and gateway and redis',
      ];
      await expectPromisesKept(deployment, parts, 0.4);
    });
  });
});

/** Longer than the gateway's deadlines, which are 5 s for a request and 12 s for the connection; milliseconds. */
const LONGER_THAN_ALL_DEADLINES_MS = 13_000;

// @proves crashes-5
test('a core that is suspended beyond all deadlines creates no duplicate and recovers by itself', async () => {
  const deployment = await deployApart({ DATABASE_URL: newSqliteUrl() });
  const { gatewayUrl } = deployment;
  const clients = connectClients(deployment);
  const load = await startLoad(gatewayUrl, clients, createChance(SEED));
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
});

/**
 * Kills parts of a deployment under load, one after the other, and checks the promises after each kill and at the
 * end.
 *
 * @param share the fraction of all kills
 */
async function expectPromisesKept(deployment: Deployment, parts: readonly string[], share: number): Promise<void> {
  const { gatewayUrl } = deployment;
  const core = connectClients(deployment);
  const chance = createChance(SEED);
  const rounds = new Rounds(gatewayUrl, core);
  for (let kill = 0; kill < Math.max(1, Math.round(KILLS * share)); kill += 1) {
    const part = parts[kill % parts.length] as string;
    const ledger = await loadWithKill(part, chance.branch());
    await rounds.expectKept(ledger, `CRASH_SEED=${SEED}, kill ${kill + 1} (${part})`);
  }
  await rounds.expectAllKept();

  /** Runs callers, kills a part meanwhile, and restarts it. */
  async function loadWithKill(part: string, own: Chance): Promise<Ledger> {
    const load = await startLoad(gatewayUrl, core, own.branch());
    try {
      await sleep(own.between(SOONEST_MS, LATEST_MS));
      await deployment.kill(part);
      await deployment.restart(part);
      await deployment.serves();
      await created(load, CREATED_AFTER);
    } finally {
      await load.stop();
    }
    return load.ledger;
  }
}

async function aRedisServer(): Promise<Server & { url: string }> {
  const redis = await aRedis();
  return { url: redis.url, kill: redis.kill, revive: redis.restart };
}
