import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { type Excused, type Lost, now } from '../history.ts';
import type { Simulation } from '../simulation.ts';
import type { Part } from '../world.ts';
import { lasting, mostlyFirst, one } from './choices.ts';
import { aScenario } from './scenario.ts';

const part = fc.nat(6);

/** The mutex key that serializes stops and starts of parts. */
export const MACHINE = 'machine';

/** Runs a disturbance of a part. Only one of them runs at a time. */
export const onMachine = (
  sim: Simulation,
  what: string,
  loses: readonly Lost[],
  run: () => Promise<void>,
  excuses: Excused = 'any',
): Promise<void> => sim.inTurn(MACHINE, () => sim.disturb(what, loses, run, excuses));

/** Returns the requests that may fail when the named part fails. */
export const through = (name: string): Excused => (name.startsWith('gateway') ? (name as Excused) : 'any');

/** How long a process may take to stop, besides its drain: ten seconds, and more for a busy machine; milliseconds. */
const STOPS_WITHIN_MS = 14_000;

const lostWith = ({ losesCounts }: Part): readonly Lost[] => (losesCounts ? ['counts'] : []);

/** Kills a part, and restarts it after a while. */
export const crash = aScenario({
  weight: 1,
  choice: fc.record({ part, forMs: lasting(0, 1500) }),
  run: (sim, { part: index, forMs }) => {
    const part = sim.part(index);
    const kill = async () => {
      await part.kill();
      await sleep(forMs);
      await part.start();
    };
    const what = `${part.name} is killed, and is gone for ${forMs} ms`;
    return onMachine(sim, what, lostWith(part), kill, through(part.name));
  },
});

/** Suspends a part for a while. */
export const stallPart = aScenario({
  weight: 1,
  choice: fc.record({ part, forMs: lasting(10, 8000) }),
  run: (sim, { part: index, forMs }) => {
    const part = sim.part(index);
    const suspend = async () => {
      part.pause();
      await sleep(forMs);
      part.resume();
    };
    return onMachine(sim, `${part.name} is suspended for ${forMs} ms`, [], suspend, through(part.name));
  },
});

/** Restarts a process, perhaps with other settings. */
export const restart = aScenario({
  weight: 1,
  choice: fc.record({
    part,
    settings: fc.constantFrom({}, {}, { LOG_LEVEL: 'trace' }, { LOG_LEVEL: 'silent' }),
  }),
  run: (sim, { part: index, settings }) => {
    const stoppable = sim.world.parts.filter(({ terminate }) => terminate);
    const part = one(stoppable, index);
    const stop = async () => {
      const begin = now();
      await part.terminate?.();
      const tookMs = now() - begin;
      if (tookMs > sim.drainMs + STOPS_WITHIN_MS) sim.history.fail(`${part.name} took ${tookMs} ms to stop`);
      await part.start(settings);
    };
    return onMachine(sim, `${part.name} is stopped gracefully`, lostWith(part), stop, through(part.name));
  },
});

/** Chooses the index of a link: mostly the first, which leads to the cores. */
const link = mostlyFirst(3);

/** The share of requests whose replies are lost. */
const LOST = 0.3;

/** Disturbs the link to a part: it refuses connections, passes nothing on, or loses replies. */
export const cutLink = aScenario({
  weight: 4,
  choice: fc.record({ link, how: fc.constantFrom('refuse', 'silence', 'lose', 'lose'), forMs: lasting(5, 2500) }),
  run: (sim, { link: index, how, forMs }) => {
    const [name, link] = one(Object.entries(sim.world.links), index);
    const cut = async () => {
      if (how === 'refuse') link.refuse();
      else if (how === 'silence') link.silence();
      else link.loseReplies({ of: () => Math.random() < LOST, count: Number.POSITIVE_INFINITY });
      await sleep(forMs);
      link.heal();
    };
    const what = `the link to the ${name}: ${how} for ${forMs} ms`;
    return sim.inTurn(`link ${name}`, () => sim.disturb(what, [], cut, through(name)));
  },
});
