import { randomInt, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { connectToCore } from '../support/core-clients.ts';
import { describeWithMongoServer, startWireServer } from '../support/mongodb.ts';
import { temporaryFolder } from '../support/processes.ts';
import { describeWithRedisServer, startRedis } from '../support/servers.ts';
import { sizeOf } from '../support/size-of.ts';
import { type Chance, chanceOf } from './chance.ts';
import { type Deployment, deployApart, deployTogether, type Server } from './deployment.ts';
import { type Ledger, startLoad } from './load.ts';
import { brokenPromises, type Settled } from './promises-kept.ts';

/** The total number of kills in this file. */
const KILLS = sizeOf('CRASH_KILLS', { usual: 8, soak: 200 });

/** The seed of the requests, and of the time and target of each kill. */
const SEED = Number(process.env.CRASH_SEED ?? randomInt(2 ** 32));

vi.setConfig({ testTimeout: 60_000 + KILLS * 30_000 });
console.info(`Crashes from CRASH_SEED=${SEED}`);

/** How long the load runs before a kill; milliseconds. */
const [SOONEST_MS, LATEST_MS] = [50, 900];

/**
 * The number of leads that must be created after a crash before the load ends, so that callers from before it get to
 * continue.
 */
const CREATED_AFTER = 20;

describeWithRedisServer(
  'everything that was acknowledged is there once, and everything else has one outcome, after',
  () => {
    test('kills of core, gateway and Redis, on SQLite', async () => {
      const redis = await aRedis();
      const settings = { DATABASE_URL: aFile(), REDIS_URL: redis.url };
      const deployment = await deployApart(settings, { redis });
      await expectPromisesKept(deployment, ['core', 'gateway', 'redis', 'core and gateway'], 0.3);
    });

    test('kills of what npm start runs, on SQLite', async () => {
      const deployment = await deployTogether({ DATABASE_URL: aFile() });
      await expectPromisesKept(deployment, ['everything', 'core', 'gateway', 'start'], 0.2);
    });

    describeWithMongoServer('on MongoDB', () => {
      test('kills of the database, core, gateway and Redis', async () => {
        const [redis, database] = [await aRedis(), await aDatabase()];
        const settings = { DATABASE_URL: `${database.url}test-${randomUUID()}`, REDIS_URL: redis.url };
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

      test('kills of what npm start runs', async () => {
        const database = await aDatabase();
        const deployment = await deployTogether({ DATABASE_URL: `${database.url}test-${randomUUID()}` });
        await expectPromisesKept(deployment, ['everything', 'core', 'gateway', 'start'], 0.1);
      });
    });
  },
);

/**
 * Kills parts of a deployment under load, one after the other, and checks the promises after each kill and at the
 * end.
 *
 * @param share the fraction of all kills
 */
async function expectPromisesKept(deployment: Deployment, parts: readonly string[], share: number): Promise<void> {
  const { gatewayUrl, coreUrl } = deployment;
  const core = connectToCore(coreUrl);
  onTestFinished(() => core.close());
  const chance = chanceOf(SEED);
  const rounds: { ledger: Ledger; settled: Settled; name: string }[] = [];
  for (let kill = 0; kill < Math.max(1, Math.round(KILLS * share)); kill += 1) {
    const part = parts[kill % parts.length] as string;
    const name = `CRASH_SEED=${SEED}, kill ${kill + 1} (${part})`;
    const ledger = await loadWithKill(part, chance.branch());
    const { broken, settled } = await brokenPromises(gatewayUrl, core, ledger);
    expect(broken, name).toEqual([]);
    rounds.push({ ledger, settled, name });
  }
  // No later crash undid anything either.
  for (const { ledger, settled, name } of rounds) {
    const { broken } = await brokenPromises(gatewayUrl, core, ledger, settled);
    expect(broken, `${name}, after all others`).toEqual([]);
  }

  /** Runs callers, kills a part meanwhile, and restarts it. */
  async function loadWithKill(part: string, own: Chance): Promise<Ledger> {
    const load = await startLoad(gatewayUrl, core, own.branch());
    try {
      await sleep(own.between(SOONEST_MS, LATEST_MS));
      await deployment.kill(part);
      await deployment.restart(part);
      await deployment.serves();
      const before = load.created();
      await vi.waitUntil(() => load.created() >= before + CREATED_AFTER, { timeout: 20_000 });
    } finally {
      await load.stop();
    }
    return load.ledger;
  }
}

async function aRedis(): Promise<Server & { url: string }> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  return { url: redis.url, kill: () => redis.kill(), revive: () => redis.restart() };
}

async function aDatabase(): Promise<Server & { url: string }> {
  const database = await startWireServer();
  onTestFinished(() => database.stop());
  return database;
}

const aFile = () => `sqlite:${join(temporaryFolder(), 'leads.db')}`;
