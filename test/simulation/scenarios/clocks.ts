import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { now } from '../history.ts';
import type { Simulation } from '../simulation.ts';
import type { SettableClock } from '../world.ts';
import { lasting, one } from './choices.ts';
import { aScenario } from './scenario.ts';

/** The mutex key of scenarios that depend on the clocks. */
export const CLOCKS = 'clocks';

/** By how much a clock is set ahead: less than the lifetime of a key, often more than any timeout in the service; seconds. */
const ahead = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(0, -1, 1) },
  { weight: 3, arbitrary: fc.integer({ min: -90, max: 90 }) },
  { weight: 2, arbitrary: fc.integer({ min: -6 * 3600, max: 6 * 3600 }) },
);

/** Names the register of a clock, whose value is by how many seconds the clock is ahead. */
export const describeClock = (name: string): string => `seconds that the clock of ${name} is ahead`;

/** Sets a clock, and records it. */
export function setTo(sim: Simulation, clock: SettableClock, ahead: number): void {
  const begin = now();
  clock.set(ahead);
  sim.put(describeClock(clock.name), `${ahead}`, { party: 'fault injection', begin });
}

/** Sets the clock of one machine. */
export const setClock = aScenario({
  weight: 5,
  choice: fc.record({ clock: fc.nat(5), ahead }),
  run: (sim, { clock, ahead }) => sim.inTurn(CLOCKS, async () => setTo(sim, one(sim.world.clocks, clock), ahead)),
});

/** Sets one clock, or all, wrong by an hour to most of a year, and then right again. Keys may expire, and become valid again. */
export const leapClocks = aScenario({
  weight: 4,
  choice: fc.record({
    clock: fc.option(fc.nat(5)),
    aheadHours: fc.constantFrom(-8000, -700, -1, 1, 700, 8000),
    forMs: lasting(50, 2500),
  }),
  run: (sim, { clock, aheadHours, forMs }) =>
    sim.inTurn(CLOCKS, async () => {
      const leaping = clock === null ? sim.world.clocks : [one(sim.world.clocks, clock)];
      for (const clock of leaping) setTo(sim, clock, aheadHours * 3600);
      await sleep(forMs);
      for (const clock of leaping) setTo(sim, clock, 0);
    }),
});
