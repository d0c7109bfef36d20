import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, test } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { times } from '../support/builders.ts';
import { steps } from './operations.ts';
import { runSteps } from './run-steps.ts';

/** A failure tells its seed and path: SOAK_SEED and SOAK_PATH repeat it. */
const { SOAK_SEED, SOAK_PATH } = process.env;

/** What the first runs are made from: the same every time, so that what they find is due to a change. */
const USUAL_SEED = 1;

/** So many runs are made from one seed; after each of them, what is through is told. */
const RUNS_OF_A_SEED = 1000;

/** As much as the slowest store ever takes for one run; milliseconds. */
const RUN_MS = 2000;

/**
 * Random runs of steps on a store, through two processes, each outcome held against a model.
 *
 * Requests that are made at once must have outcomes that some order of them explains. Listings are made alone: not every
 * database reads a page as of one moment.
 *
 * @param runs how many there are
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
