import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { connectToCore } from '../support/core-clients.ts';
import { sizeOf } from '../support/size-of.ts';
import { type Chance, chanceOf } from './chance.ts';
import { type Deployment, deployApart } from './deployment.ts';
import { aForgetfulDisk, describeWithForgetfulDisk } from './forgetful-disk.ts';
import { type Ledger, type Load, startLoad } from './load.ts';
import { brokenPromises, type Settled } from './promises-kept.ts';

/** How many times the power fails, over all tests of this file. */
const CUTS = sizeOf('POWER_CUTS', { usual: 10, soak: 200 });

/** When it fails, what is left on the disk then, and what is asked meanwhile, follows from this. */
const SEED = Number(process.env.POWER_SEED ?? randomInt(2 ** 32));

vi.setConfig({ testTimeout: 60_000 + CUTS * 30_000 });
console.info(`Power cuts from POWER_SEED=${SEED}`);

/** How long the load goes on before it; milliseconds. */
const [SOONEST_MS, LATEST_MS] = [50, 900];

/** How many changes and syncs of the disk there are until the power fails, at most: about two checkpoints of the database. */
const MAX_CHANGES = 100;

/** How many a first start makes. */
const START_CHANGES = 70;

/** How many leads are created afterwards before the load ends: by callers who were there when the power failed. */
const CREATED_AFTER = 20;

const DATABASE = 'leads.db';

/** How many tests share the power cuts. */
const TESTS = 5;

/** What a test has the power fail in the middle of. */
interface Scene {
  readonly deployment: Deployment;
  readonly chance: Chance;
  /** Lets callers work. */
  startLoad(): Promise<Load>;
  /** Has the database begin anew. */
  replaceDisk(): Promise<void>;
  /**
   * Has the power fail, and waits for that.
   *
   * @param after how many changes and syncs of the disk
   * @param of which file; empty: any
   */
  failPower(after: number, of?: string): Promise<void>;
}

describeWithForgetfulDisk(
  'everything that was acknowledged is there once, and everything else has one outcome, after the power failed',
  () => {
    test('at any moment', () =>
      expectPromisesKept(async ({ chance, startLoad, failPower }) => {
        const load = await startLoad();
        await sleep(chance.between(SOONEST_MS, LATEST_MS));
        await failPower(chance.between(0, MAX_CHANGES));
        return load;
      }));

    test('while the log is moved into the database', () =>
      expectPromisesKept(async ({ chance, startLoad, failPower }) => {
        const load = await startLoad();
        await failPower(chance.between(1, MAX_CHANGES), DATABASE);
        return load;
      }));

    test('in the first start, or soon after it', () =>
      expectPromisesKept(async ({ deployment, chance, startLoad, replaceDisk, failPower }) => {
        await deployment.kill('core');
        await replaceDisk();
        let hasFailed = false;
        const failed = failPower(chance.between(1, chance.oneOf([START_CHANGES, 6 * START_CHANGES]))).then(() => {
          hasFailed = true;
        });
        await deployment.restart('core');
        let load: Load | undefined;
        // Whoever comes before there is a core is let down by nobody.
        while (!load && !hasFailed) load = await startLoad().catch(() => sleep(10, undefined));
        await failed;
        return load;
      }));

    test('while the core stops', () =>
      expectPromisesKept(async ({ deployment, chance, startLoad, failPower }) => {
        const load = await startLoad();
        await sleep(chance.between(SOONEST_MS, LATEST_MS));
        const { child, ended } = deployment.process('core');
        child.kill('SIGTERM');
        const failed = failPower(chance.between(1, MAX_CHANGES), chance.oneOf(['', DATABASE, `${DATABASE}-wal`]));
        await Promise.race([failed, ended()]);
        await failPower(0);
        await failed;
        return load;
      }));

    test('once the core has stopped', () =>
      expectPromisesKept(async ({ deployment, chance, startLoad, failPower }) => {
        const load = await startLoad();
        await sleep(chance.between(SOONEST_MS, LATEST_MS));
        const { child, ended } = deployment.process('core');
        child.kill('SIGTERM');
        await ended();
        await failPower(0);
        return load;
      }));
  },
);

/** What disks keep of data and of names that were not synced, one after the other; those of later ones are up to chance. */
const KEPT_FIRST = [
  [0, 0],
  [0, 1],
] as const;

/**
 * Has the power of a disk fail again and again, and a new core keep what the old ones promised.
 *
 * @param untilFailure has callers work, and the power fail; gives their load, if there was any
 */
async function expectPromisesKept(untilFailure: (scene: Scene) => Promise<Load | undefined>): Promise<void> {
  const disk = await aForgetfulDisk();
  // In a folder that the core makes: the disk has to keep that, too.
  const deployment = await deployApart({ DATABASE_URL: `sqlite:${join(disk.folder, 'data', DATABASE)}` });
  const { gatewayUrl, coreUrl } = deployment;
  const core = connectToCore(coreUrl);
  onTestFinished(() => core.close());
  const chance = chanceOf(SEED);
  let rounds: { ledger: Ledger; settled: Settled; name: string }[] = [];
  for (let cut = 0; cut < Math.max(1, Math.round(CUTS / TESTS)); cut += 1) {
    const name = `POWER_SEED=${SEED}, cut ${cut + 1}`;
    const own = chance.branch();
    const someOf = () => own.oneOf([0, 0.1, 0.5, 0.9, 1]);
    const [keepsData, keepsNames] = KEPT_FIRST[cut] ?? [someOf(), someOf()];
    const ledger = await loadWithCut({
      deployment,
      chance: own,
      async failPower(after, of = '') {
        await disk.failPower({ after, of, keepsData, keepsNames, seed: own.between(0, 2 ** 32 - 1) });
        await disk.failed();
      },
      startLoad: () => startLoad(gatewayUrl, core, own.branch()),
      async replaceDisk() {
        await disk.replace();
        rounds = [];
      },
    });
    if (!ledger) continue;
    const { broken, settled } = await brokenPromises(gatewayUrl, core, ledger);
    expect(broken, name).toEqual([]);
    rounds.push({ ledger, settled, name });
  }
  // No later cut took anything back either.
  for (const { ledger, settled, name } of rounds) {
    const { broken } = await brokenPromises(gatewayUrl, core, ledger, settled);
    expect(broken, `${name}, after all others`).toEqual([]);
  }

  async function loadWithCut(scene: Scene): Promise<Ledger | undefined> {
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

/** Waits until callers who were there before create leads again, or are shut out: then their studio is lost, or its key. */
async function goesOn({ created, ledger: { requests } }: Load): Promise<void> {
  const before = created();
  const isShutOut = () => requests.some(({ answers }) => answers.at(-1)?.status === 401);
  await vi.waitUntil(() => created() >= before + CREATED_AFTER || isShutOut(), { timeout: 20_000 });
}
