import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { type Lost, now } from '../history.ts';
import type { Life } from '../life.ts';
import type { Part } from '../world.ts';
import { lasting, one } from './choices.ts';
import { aScenario } from './scenario.ts';

const part = fc.nat(5);

/** The mutex key that serializes stops and starts of parts of one machine or process group. */
export const MACHINE = 'machine';

/** Disturbs a machine, or a process on it, so that requests may fail. */
export const onMachine = (
  life: Life,
  what: string,
  loses: readonly Lost[],
  happen: () => Promise<void>,
): Promise<void> => life.inTurn(MACHINE, () => life.disturb(what, loses, happen));

/**
 * How long a process may take to stop, without its drain; milliseconds. Ten seconds, and an allowance for a busy
 * machine.
 */
const STOPS_WITHIN_MS = 14_000;

const lostWith = ({ losesCounts }: Part): readonly Lost[] => (losesCounts ? ['counts'] : []);

/** A part is killed, and restarted after a while. */
export const crash = aScenario({
  weight: 1,
  choice: fc.record({ part, forMs: lasting(0, 1500) }),
  happen: (life, { part: index, forMs }) => {
    const part = life.part(index);
    return onMachine(life, `${part.name} is killed, and is gone for ${forMs} ms`, lostWith(part), async () => {
      await part.kill();
      await sleep(forMs);
      await part.start();
    });
  },
});

/** A part is suspended. */
export const standstill = aScenario({
  weight: 1,
  choice: fc.record({ part, forMs: lasting(10, 8000) }),
  happen: (life, { part: index, forMs }) => {
    const part = life.part(index);
    return onMachine(life, `${part.name} stands still for ${forMs} ms`, [], async () => {
      part.pause();
      await sleep(forMs);
      part.resume();
    });
  },
});

/** A process is shut down and restarted, perhaps with other settings. */
export const restart = aScenario({
  weight: 1,
  choice: fc.record({
    part,
    settings: fc.constantFrom({}, {}, { LOG_LEVEL: 'trace' }, { LOG_LEVEL: 'silent' }),
    isToldTwice: fc.boolean(),
  }),
  happen: (life, { part: index, settings, isToldTwice }) => {
    const stoppable = life.world.parts.filter(({ terminate }) => terminate);
    const part = one(stoppable, index);
    return onMachine(life, `${part.name} is stopped in order`, lostWith(part), async () => {
      const begin = now();
      const status = await part.terminate?.(isToldTwice);
      const tookMs = now() - begin;
      if (status !== 0) life.history.breaks(`${part.name} was stopped in order, and ended with ${status}`);
      if (tookMs > life.drainMs + STOPS_WITHIN_MS) life.history.breaks(`${part.name} took ${tookMs} ms to stop`);
      // Certificates are also renewed with a restart.
      await life.world.certificates?.renew();
      await part.start(settings);
    });
  },
});

const way = fc.nat(4);

/** A connection between two parts breaks, or transmits nothing. */
export const cutWay = aScenario({
  weight: 2,
  choice: fc.record({ way, how: fc.constantFrom('refuse', 'silence', 'break'), forMs: lasting(5, 2500) }),
  happen: (life, { way: index, how, forMs }) => {
    const [name, way] = one(Object.entries(life.world.ways), index);
    return life.inTurn(`way ${name}`, () =>
      life.disturb(`the way to the ${name}: ${how} for ${forMs} ms`, [], async () => {
        if (how === 'refuse') way.refuse();
        else if (how === 'silence') way.silence();
        else way.breakAfterReplies(0.3);
        await sleep(forMs);
        way.heal();
      }),
    );
  },
});
