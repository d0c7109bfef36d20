import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test, vi } from 'vitest';
import { type Chance, createChance, seedFrom } from '../tools/chance.ts';
import { testSize } from '../tools/test-size.ts';
import { connectClients, type Deployment, deployApart } from './deployment.ts';
import { aForgetfulDisk, describeWithForgetfulDisk } from './forgetful-disk.ts';
import { type Ledger, type Load, startLoad } from './load.ts';
import { Rounds } from './promises-kept.ts';

/** The total number of power failures in this file, half of them at any moment. */
const CUTS = testSize('POWER_CUTS', { usual: 6, soak: 60 });

/** The seed of the requests, of the time of each failure, and of what remains on the disk. */
const SEED = seedFrom('POWER_SEED');

vi.setConfig({ testTimeout: 600_000 + CUTS * 30_000 });

/** How long the load runs before a failure; milliseconds. */
const [SOONEST_MS, LATEST_MS] = [50, 900];

/** The maximum number of changes and syncs of the disk until the power fails: about two checkpoints of the database. */
const MAX_CHANGES = 100;

/** The number of changes and syncs that a first start makes. */
const START_CHANGES = 70;

/**
 * The number of leads that must be created after a failure before the load ends, so that callers from before it get
 * to continue.
 */
const CREATED_AFTER = 20;

const DATABASE = 'leads.db';

/** The deployment and disk of a test. */
interface Scene {
  readonly deployment: Deployment;
  readonly chance: Chance;
  /** Starts callers. */
  startLoad(): Promise<Load>;
  /** Replaces the database by an empty one. */
  replaceDisk(): Promise<void>;
  /**
   * Makes the power fail, and waits for the failure.
   *
   * @param after the number of changes and syncs until then
   * @param of the file whose changes count; empty: any
   */
  failPower(after: number, of?: string): Promise<void>;
}

/** Runs callers until the power fails; returns their load, if there was any. */
type Failure = (scene: Scene) => Promise<Load | undefined>;

const atAnyMoment: Failure = async ({ chance, startLoad, failPower }) => {
  const load = await startLoad();
  await sleep(chance.between(SOONEST_MS, LATEST_MS));
  await failPower(chance.between(0, MAX_CHANGES));
  return load;
};

const duringACheckpoint: Failure = async ({ chance, startLoad, failPower }) => {
  const load = await startLoad();
  await failPower(chance.between(1, MAX_CHANGES), DATABASE);
  return load;
};

const duringTheFirstStartOrSoonAfter: Failure = async ({ deployment, chance, startLoad, replaceDisk, failPower }) => {
  await deployment.kill('core');
  await replaceDisk();
  let hasFailed = false;
  const failed = failPower(chance.between(1, chance.oneOf([START_CHANGES, 6 * START_CHANGES]))).then(() => {
    hasFailed = true;
  });
  await deployment.restart('core');
  let load: Load | undefined;
  // Until a core is available, there is no promise to break.
  while (!load && !hasFailed) load = await startLoad().catch(() => sleep(10, undefined));
  await failed;
  return load;
};

const duringOrAfterAStop: Failure = async ({ deployment, chance, startLoad, failPower }) => {
  const load = await startLoad();
  await sleep(chance.between(SOONEST_MS, LATEST_MS));
  const { child, ended } = deployment.process('core');
  child.kill('SIGTERM');
  const failed = failPower(chance.between(1, MAX_CHANGES), chance.oneOf(['', DATABASE, `${DATABASE}-wal`]));
  await Promise.race([failed, ended()]);
  await failPower(0);
  await failed;
  return load;
};

// @proves crashes-3 sqlite-4
describeWithForgetfulDisk('a core on SQLite after power failures', () => {
  test('acknowledged leads exist once after power failures at any moment', () => expectPromisesKept([atAnyMoment]));

  test('leads exist once after power failures in the first start, a checkpoint or a stop', () =>
    expectPromisesKept([duringTheFirstStartOrSoonAfter, duringACheckpoint, duringOrAfterAStop]));
});

/** The probabilities that unsynced data and names survive the first failures; later ones are random. */
const KEPT_FIRST = [
  [0, 0],
  [0, 1],
] as const;

/** Makes the power of a disk fail in several ways in turn, and expects each new core to keep the promises of the earlier ones. */
async function expectPromisesKept(failures: readonly Failure[]): Promise<void> {
  const disk = await aForgetfulDisk();
  // The core creates this folder, which must survive, too.
  const deployment = await deployApart({ DATABASE_URL: `sqlite:${join(disk.folder, 'data', DATABASE)}` });
  const { gatewayUrl } = deployment;
  const core = connectClients(deployment);
  const chance = createChance(SEED);
  const rounds = new Rounds(gatewayUrl, core);
  for (let cut = 0; cut < CUTS / 2; cut += 1) {
    const untilFailure = failures[cut % failures.length] as Failure;
    const own = chance.branch();
    const someOf = () => own.oneOf([0, 0.1, 0.5, 0.9, 1]);
    const [keepsData, keepsNames] = KEPT_FIRST[cut] ?? [someOf(), someOf()];
    const scene: Scene = {
      deployment,
      chance: own,
      async failPower(after, of = '') {
        await disk.failPower({ after, of, keepsData, keepsNames, seed: own.between(0, 2 ** 32 - 1) });
        await disk.failed();
      },
      startLoad: () => startLoad(gatewayUrl, core, own.branch()),
      async replaceDisk() {
        await disk.replace();
        rounds.clear();
      },
    };
    const ledger = await loadWithCut(untilFailure, scene);
    if (ledger) await rounds.expectKept(ledger, `POWER_SEED=${SEED}, cut ${cut + 1}`);
  }
  await rounds.expectAllKept();

  async function loadWithCut(untilFailure: Failure, scene: Scene): Promise<Ledger | undefined> {
    const load = await untilFailure(scene);
    try {
      await deployment.kill('core');
      await disk.restorePower();
      await deployment.restart('core');
      await deployment.serves();
      if (load) await goesOn(load);
    } finally {
      await load?.stop();
    }
    return load?.ledger;
  }
}

/** Waits until the existing callers create leads again, or are refused because their studio or its key is lost. */
async function goesOn({ created, ledger: { requests } }: Load): Promise<void> {
  const before = created();
  const isShutOut = () => requests.some(({ answers }) => answers.at(-1)?.status === 401);
  await vi.waitUntil(() => created() >= before + CREATED_AFTER || isShutOut(), { timeout: 100_000 });
}
