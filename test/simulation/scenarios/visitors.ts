import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { chanceOf } from '../../crash/chance.ts';
import { times } from '../../support/builders.ts';
import type { Simulation } from '../simulation.ts';
import { lasting } from './choices.ts';
import { move } from './crm.ts';
import { aScenario, type Scenario } from './scenario.ts';
import { create, get, list } from './website.ts';

/** The maximum pause of a caller between two actions; milliseconds. */
const MAX_BETWEEN_MS = 25;

/** Actions of visitors, each with parameters generated from a seed: the same for the same seed. */
const ACTIONS = [
  ...[create, create, create, create].map(chosenFor),
  ...[move, move].map(chosenFor),
  chosenFor(get),
  chosenFor(list),
];

function chosenFor<Choice>({ choice, run }: Scenario<Choice>): (sim: Simulation, seed: number) => Promise<void> {
  const arbitrary = fc.noBias(choice);
  return (sim, seed) => run(sim, fc.sample(arbitrary, { seed, numRuns: 1 })[0] as Choice);
}

/** Many visitors: the usual activity of website servers and the CRM for a while, whatever else happens. */
export const visitors = aScenario({
  weight: 6,
  choice: fc.record({ callers: fc.integer({ min: 1, max: 6 }), forMs: lasting(20, 4000), seed: fc.nat() }),
  async run(sim, { callers, forMs, seed }) {
    const until = performance.now() + forMs;
    await Promise.all(
      times(callers, async (caller) => {
        const chance = chanceOf(seed + caller);
        while (performance.now() < until) {
          await chance.oneOf(ACTIONS)(sim, chance.between(0, 2 ** 31 - 1));
          await sleep(chance.between(0, MAX_BETWEEN_MS));
        }
      }),
    );
  },
});
