import fc from 'fast-check';
import { afterAll, beforeAll, test } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { times } from '../support/builders.ts';
import { steps } from './operations.ts';
import { runSteps } from './run-steps.ts';

/**
 * SOAK_RUNS: how many runs there are, each time others. The usual ones are the same every time, so that what they find
 * is due to a change. A failure tells its seed and path: SOAK_SEED and SOAK_PATH repeat it.
 */
const { SOAK_RUNS, SOAK_SEED, SOAK_PATH } = process.env;
const USUAL_SEED = '1';
const seed = SOAK_SEED ?? (SOAK_RUNS === undefined ? USUAL_SEED : undefined);

/** As much as the slowest store ever takes for one run; milliseconds. */
const RUN_MS = 2000;

/**
 * Random runs of steps on a store, through two processes, each outcome held against a model.
 *
 * Requests that are made at once must have outcomes that some order of them explains. Listings are made alone: not every
 * database reads a page as of one moment.
 *
 * @param usualRuns how many there are unless SOAK_RUNS tells
 * @param open opens a store on the same data each time
 */
export function randomRuns(usualRuns: number, open: () => Promise<Store>): void {
  const runs = SOAK_RUNS === undefined ? usualRuns : Number(SOAK_RUNS);
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
    await fc.assert(property, {
      numRuns: runs,
      ...(seed !== undefined && { seed: Number(seed) }),
      ...(SOAK_PATH !== undefined && { path: SOAK_PATH }),
    });
  });
}
