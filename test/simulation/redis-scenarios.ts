import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { REDIS_CONNECT_MS } from '../../common/deadlines.ts';
import type { Excused } from './history.ts';
import type { Kept, RedisDeployment } from './redis/redis-deployment.ts';
import { lasting } from './scenarios/choices.ts';
import { aScenario, type Scenario } from './scenarios/scenario.ts';
import type { World } from './world.ts';

/* Scenarios of the Redis that gateways share. */

/** A world with such a Redis. */
export interface RedisWorld extends World {
  readonly redis: RedisDeployment;
}

/** Errors with which Redis counts nothing. */
const REFUSALS = [
  'LOADING Redis is loading the dataset in memory',
  "OOM command not allowed when used memory > 'maxmemory'.",
  "READONLY You can't write against a read only replica.",
  'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
];

/** How long gateways take to reconnect to Redis, if an attempt began just before it returned; milliseconds. */
const CONNECTED_WITHIN_MS = REDIS_CONNECT_MS + 250;

const span = lasting(50, 4000);
const share = fc.constantFrom(0.05, 0.2, 0.5);

/** Creates a scenario that disturbs Redis. Only one of them runs at a time. */
const disturbance = <Choice>(
  [weight, what]: readonly [number, string],
  choice: fc.Arbitrary<Choice>,
  losesCounts: boolean,
  run: (redis: RedisDeployment, choice: Choice) => void | Promise<void>,
  excuses: Excused = 'any',
): Scenario =>
  aScenario<Choice>({
    weight,
    choice,
    run: (sim, choice) => {
      const { redis } = sim.world as RedisWorld;
      const description = `${what} ${JSON.stringify(choice)}`;
      const happen = async () => {
        await run(redis, choice);
        while (!redis.isReady()) await sleep(20);
        // A gateway that has not noticed yet reports ready, and then refuses requests until it has reconnected.
        await sleep(CONNECTED_WITHIN_MS);
      };
      return sim.inTurn('redis', () => sim.disturb(description, losesCounts ? ['counts'] : [], happen, excuses));
    },
  }) as Scenario;

/** Creates a scenario that changes the weather of Redis for a while. */
const spell = (
  what: readonly [number, string],
  choice: fc.Arbitrary<Partial<RedisDeployment['weather']> & { readonly forMs: number }>,
): Scenario =>
  disturbance(what, choice, false, async ({ weather }, { forMs, ...spell }) => {
    const before = { ...weather };
    Object.assign(weather, spell);
    await sleep(forMs);
    Object.assign(weather, before);
  });

async function restart(redis: RedisDeployment, kept: Kept, forMs: number): Promise<void> {
  redis.kill();
  await sleep(forMs);
  redis.start(kept);
}

/** The scenarios of Redis, by name. */
export const REDIS_SCENARIOS: Readonly<Record<string, Scenario>> = {
  killRedis: disturbance(
    [2, 'Redis is killed, and loses'],
    fc.record({ kept: fc.constantFrom('saved', 'none'), forMs: span }),
    true,
    (redis, { kept, forMs }) => restart(redis, kept, forMs),
  ),

  restartRedis: disturbance(
    [1, 'Redis is killed, and keeps all'],
    fc.record({ forMs: span }),
    false,
    (redis, { forMs }) => restart(redis, 'all', forMs),
  ),

  stallRedis: disturbance([2, 'Redis is suspended'], fc.record({ forMs: span }), false, async (redis, { forMs }) => {
    redis.pause();
    await sleep(forMs);
    redis.resume();
  }),

  cutRedis: disturbance(
    [2, 'Redis is cut off from all but some gateways'],
    fc.record({ gateways: fc.subarray(['gateway 1', 'gateway 2']), forMs: span }),
    false,
    async (redis, { gateways, forMs }) => {
      redis.cutOff(gateways);
      await sleep(forMs);
      redis.heal();
    },
  ),

  loseCounts: spell([2, 'commands and replies of Redis are lost'], fc.record({ losses: share, forMs: span })),
  slowRedis: spell([1, 'commands of Redis are slow'], fc.record({ slowness: share, forMs: span })),
  refuseCounts: spell([1, 'Redis refuses'], fc.record({ refusal: fc.constantFrom(...REFUSALS), forMs: span })),

  setRedisClock: disturbance(
    [3, 'the clock of Redis is set'],
    fc.record({ aheadMs: fc.integer({ min: -90_000, max: 90_000 }) }),
    true,
    (redis, { aheadMs }) => redis.setClock(aheadMs),
    'none',
  ),
};
