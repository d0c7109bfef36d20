import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import type { Step } from './plan.ts';
import type { ReplicaSet } from './replica-set/replica-set.ts';
import { lasting } from './scenarios/choices.ts';
import type { Scenario } from './scenarios/scenario.ts';
import type { Simulation } from './simulation.ts';
import type { World } from './world.ts';

/* What happens to a replica set in the lives on it, beside kills and suspensions of its members. */

/** A replica set on a machine. */
export interface SimulatedCluster {
  readonly set: ReplicaSet;
  /** Cuts a member off from the others, and with it some cores, which see nothing else of the replica set. */
  cutOff(member: number, cores: readonly number[]): void;
  heal(): void;
}

/** A world on such a replica set. */
export interface MongoWorld extends World {
  readonly cluster: SimulatedCluster;
}

/** The number of steps of a plan for each of them. */
const STEPS_BETWEEN = 11;

const RETRYABLE = { ok: 0, errorLabels: ['RetryableWriteError'] };

/** Replies of a server that executes nothing, some of which a driver takes for a reason to send a write again. */
const REFUSALS = [
  { ...RETRYABLE, code: 91, codeName: 'ShutdownInProgress', errmsg: 'shutting down' },
  { ...RETRYABLE, code: 11600, codeName: 'InterruptedAtShutdown', errmsg: 'interrupted at shutdown' },
  { ok: 0, code: 1, codeName: 'InternalError', errmsg: 'failed as a whole' },
  { ok: 0, code: 112, codeName: 'WriteConflict', errmsg: 'try again' },
];

const span = lasting(200, 6000);

/** The parameters of each. */
const CHOICES = {
  stepDown: fc.record({}),
  cutPrimary: fc.record({ cores: fc.subarray([0, 1]), forMs: span }),
  loseReplies: fc.record({ share: fc.constantFrom(0.05, 0.2, 0.5), forMs: span }),
  slowDisk: fc.record({ share: fc.constantFrom(0.05, 0.3), forMs: span }),
  refuseWrites: fc.record({
    name: fc.constantFrom('insert', 'update', 'find'),
    refusal: fc.nat(REFUSALS.length - 1),
    count: fc.integer({ min: 1, max: 6 }),
  }),
} as const;

type Choices = typeof CHOICES;
type ChoiceOf<Name extends keyof Choices> = Choices[Name] extends fc.Arbitrary<infer Choice> ? Choice : never;

type Runs = { readonly [Name in keyof Choices]: (sim: Simulation, choice: ChoiceOf<Name>) => Promise<void> };

const clusterOf = ({ world }: Simulation): SimulatedCluster => (world as MongoWorld).cluster;

const disturb = (sim: Simulation, what: string, run: () => Promise<void>) =>
  sim.inTurn('replica set', () => sim.disturb(what, [], run));

const RUNS: Runs = {
  stepDown: (sim) =>
    disturb(sim, 'the primary steps down', async () => {
      clusterOf(sim).set.primary()?.stepDownInOrder();
    }),

  cutPrimary: (sim, { cores, forMs }) =>
    disturb(sim, `the primary is cut off for ${forMs} ms, with ${cores.length} cores`, async () => {
      const { set, cutOff, heal } = clusterOf(sim);
      const primary = set.primary();
      if (primary) cutOff(primary.number, cores);
      await sleep(forMs);
      heal();
    }),

  loseReplies: (sim, { share, forMs }) =>
    disturb(sim, `${share} of the replies of the database are lost for ${forMs} ms`, async () => {
      clusterOf(sim).set.weather.losses = share;
      await sleep(forMs);
      clusterOf(sim).set.weather.losses = 0;
    }),

  slowDisk: (sim, { share, forMs }) =>
    disturb(sim, `${share} of the commands are slow for ${forMs} ms`, async () => {
      clusterOf(sim).set.weather.slowness = share;
      await sleep(forMs);
      clusterOf(sim).set.weather.slowness = 0;
    }),

  refuseWrites: (sim, { name, refusal, count }) =>
    disturb(sim, `${count} times ${name} is refused`, async () => {
      const reply = REFUSALS[refusal] as object;
      for (let number = 0; number < count; number += 1) clusterOf(sim).set.weather.replies.push({ name, reply });
      await sleep(300);
      clusterOf(sim).set.weather.replies.length = 0;
    }),
};
/** The scenarios of a replica set, by name. */
export const REPLICA_SET_SCENARIOS: Readonly<Record<string, Scenario>> = Object.fromEntries(
  Object.entries(RUNS).map(([name, run]) => [
    name,
    { weight: 1, choice: CHOICES[name as keyof Choices], run: run as Scenario['run'] },
  ]),
);

const happening: fc.Arbitrary<Pick<Step, 'name' | 'choice'>> = fc.oneof(
  ...Object.entries(CHOICES).map(([name, choice]) =>
    (choice as fc.Arbitrary<unknown>).map((choice) => ({ name, choice })),
  ),
);

/** Returns the steps of a plan, with such scenarios in between. */
export function withReplicaSetSteps(seed: number, steps: readonly Step[]): Step[] {
  const between = fc.oneof(
    { weight: STEPS_BETWEEN, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: happening },
  );
  const some = fc.array(between, { minLength: steps.length, maxLength: steps.length });
  const [chosen = []] = fc.sample(fc.noBias(some), { seed, numRuns: 1 });
  return steps.flatMap((step, index) => {
    const more = chosen[index];
    return more ? [{ afterMs: 0, ...more }, step] : [step];
  });
}
