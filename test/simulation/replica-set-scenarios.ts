import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import type { Step } from './plan.ts';
import { REDIS_SCENARIOS } from './redis-scenarios.ts';
import type { ReplicaSet } from './replica-set/replica-set.ts';
import { lasting } from './scenarios/choices.ts';
import { aScenario, type Scenario } from './scenarios/scenario.ts';
import type { Simulation } from './simulation.ts';
import type { World } from './world.ts';

/* Scenarios of a replica set, besides kills and suspensions of its members. */

/** A replica set on a machine. */
export interface SimulatedCluster {
  readonly set: ReplicaSet;
  /** Cuts a member off from the others, together with some cores, which then reach no other member. */
  cutOff(member: number, cores: readonly number[]): void;
  heal(): void;
  /** Kills or suspends a member until the end of the life. Only one is lost: the others are a majority. */
  lose(member: number, how: 'killed' | 'suspended'): void;
}

/** A world on such a replica set. */
export interface MongoWorld extends World {
  readonly cluster: SimulatedCluster;
}

/** The number of steps of a plan for each of these. */
const STEPS_BETWEEN = 6;

const MEMBERS = 3;

const RETRYABLE = { ok: 0, errorLabels: ['RetryableWriteError'] };

/** Replies of a server that does not execute the command. Some make a driver retry a write. */
const REFUSALS = [
  { ...RETRYABLE, code: 91, codeName: 'ShutdownInProgress', errmsg: 'shutting down' },
  { ...RETRYABLE, code: 11600, codeName: 'InterruptedAtShutdown', errmsg: 'interrupted at shutdown' },
  { ok: 0, code: 1, codeName: 'InternalError', errmsg: 'failed as a whole' },
  { ok: 0, code: 2, codeName: 'BadValue', errmsg: 'refused for a reason of its own' },
  { ok: 0, code: 112, codeName: 'WriteConflict', errmsg: 'try again' },
];

const span = lasting(200, 6000);

/** Creates a scenario that disturbs the replica set. Only one of them runs at a time. */
const disturbance = <Choice>(
  choice: fc.Arbitrary<Choice>,
  what: string,
  run: (cluster: SimulatedCluster, choice: Choice) => void | Promise<void>,
): Scenario =>
  aScenario<Choice>({
    weight: 2,
    choice,
    run: (sim: Simulation, choice) => {
      const description = `${what} ${JSON.stringify(choice)}`;
      return sim.inTurn('replica set', () =>
        sim.disturb(description, [], async () => run((sim.world as MongoWorld).cluster, choice)),
      );
    },
  }) as Scenario;

/** Creates a scenario that changes the weather for a share of the commands for a while. */
const spell = (weather: 'losses' | 'slowness', what: string, shares: readonly number[]): Scenario =>
  disturbance(
    fc.record({ share: fc.constantFrom(...shares), forMs: span }),
    what,
    async ({ set }, { share, forMs }) => {
      set.weather[weather] = share;
      await sleep(forMs);
      set.weather[weather] = 0;
    },
  );

const REPLICA_SET_SCENARIOS: Readonly<Record<string, Scenario>> = {
  stepDown: disturbance(fc.record({}), 'the primary steps down', ({ set }) => set.primary()?.stepDownOnRequest()),

  cutPrimary: disturbance(
    fc.record({ cores: fc.subarray([0, 1]), forMs: span }),
    'the primary is cut off, with some cores',
    async ({ set, cutOff, heal }, { cores, forMs }) => {
      const primary = set.primary();
      if (primary) cutOff(primary.number, cores);
      await sleep(forMs);
      heal();
    },
  ),

  loseMember: disturbance(
    fc.record({ isPrimary: fc.boolean(), how: fc.constantFrom('killed', 'suspended') }),
    'a member is gone for good',
    ({ set, lose }, { isPrimary, how }) => {
      const primary = set.primary()?.number ?? 0;
      lose(isPrimary ? primary : (primary + 1) % MEMBERS, how);
    },
  ),

  loseReplies: spell('losses', 'replies of the database are lost', [0.05, 0.2, 0.5]),
  slowDisk: spell('slowness', 'commands of the database are slow', [0.05, 0.3]),

  refuseCommands: disturbance(
    fc.record({
      name: fc.constantFrom('insert', 'update', 'find'),
      reply: fc.constantFrom(...REFUSALS),
      count: fc.integer({ min: 1, max: 6 }),
    }),
    'the next commands of a name are refused',
    async ({ set: { weather } }, { name, reply, count }) => {
      weather.replies.push(...Array(count).fill({ name, reply }));
      await sleep(300);
      weather.replies.length = 0;
    },
  ),
};

/** The scenarios of a replica set and of the Redis beside it, by name. */
export const MORE_SCENARIOS = { ...REPLICA_SET_SCENARIOS, ...REDIS_SCENARIOS };

/** Returns the steps of a plan with these scenarios in between. @param often one of them that is every second step */
export function withMoreSteps(seed: number, steps: readonly Step[], often?: string): Step[] {
  const asked = Object.entries(MORE_SCENARIOS).filter(([name]) => name === often);
  const happening = fc.oneof(
    ...(asked.length > 0 ? asked : Object.entries(MORE_SCENARIOS)).map(([name, { weight, choice }]) => ({
      weight,
      arbitrary: choice.map((choice): Step[] => [{ afterMs: 0, name, choice }]),
    })),
  );
  const between = fc.oneof(
    { weight: asked.length > 0 ? 1 : STEPS_BETWEEN, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: happening },
  );
  const some = fc.array(between, { minLength: steps.length, maxLength: steps.length });
  const [chosen = []] = fc.sample(fc.noBias(some), { seed, numRuns: 1 });
  return steps.flatMap((step, index) => [...(chosen[index] ?? []), step]);
}
