import fc from 'fast-check';
import { one } from './choices.ts';
import { aScenario } from './scenario.ts';

/** The offset of a clock; seconds. Less than the lifetime of a key, and more than any timeout in the service. */
const ahead = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(0, -1, 1) },
  { weight: 3, arbitrary: fc.integer({ min: -90, max: 90 }) },
  { weight: 2, arbitrary: fc.integer({ min: -6 * 3600, max: 6 * 3600 }) },
);

/** The clock of one machine is set. */
export const setClock = aScenario({
  weight: 5,
  choice: fc.record({ clock: fc.nat(5), ahead }),
  async run(sim, { clock, ahead }) {
    const machine = one(sim.world.clocks, clock);
    machine.set(ahead);
    const what = `the clock of ${machine.name} is set to ${ahead} s ahead`;
    sim.history.note('fault injection', what);
  },
});
