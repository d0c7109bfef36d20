import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, test } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { times } from '../support/builders.ts';
import { steps } from './operations.ts';
import { runSteps } from './run-steps.ts';

/** A failure prints its seed and path; SOAK_SEED and SOAK_PATH repeat it. */
const { SOAK_SEED, SOAK_PATH } = process.env;

/** The seed of the first runs: always the same, so that a new failure is due to a change. */
const USUAL_SEED = 1;

/** The number of runs per seed, after which progress is printed. */
const RUNS_OF_A_SEED = 1000;

/** The longest that one run takes on the slowest store; milliseconds. */
const RUN_MS = 2000;

/**
 * Random runs of steps on a store, through two processes; each outcome is checked against a model.
 *
 * Concurrent requests must have outcomes that some order of them explains. Listings are sent alone: not every
 * database reads a page from one snapshot.
 *
 * @param runs the number of runs
 * @param open opens a store on the same data each time
 */
export function randomRuns(runs: number, open: () => Promise<Store>): void {
  const stores: Store[] = [];
  beforeAll(async () => {
    for (const _ of times(2, () => 0)) stores.push(await open());
  });
  afterAll(async () => {
    for (const store of stores) await store.close();
  });
  const processes = {
    store: (process: number) => stores[process] as Store,
    async reopen(process: number) {
      await stores[process]?.close();
      stores[process] = await open();
    },
  };

  test(`every outcome of ${runs} random runs is explained`, { timeout: 60_000 + runs * RUN_MS }, async () => {
    const property = fc.asyncProperty(steps, (each) => runSteps(processes, each));
    for (let done = 0; done < runs; done += RUNS_OF_A_SEED) {
      const seed = Number(SOAK_SEED ?? (done === 0 ? USUAL_SEED : randomInt(2 ** 31)));
      const numRuns = Math.min(RUNS_OF_A_SEED, runs - done);
      await fc.assert(property, { numRuns, seed, ...(SOAK_PATH !== undefined && { path: SOAK_PATH }) });
      if (runs > RUNS_OF_A_SEED) process.stdout.write(`${done + numRuns} of ${runs} random runs are explained\n`);
    }
  });
}
