import fc from 'fast-check';
import type { Quota } from './promises/quota.ts';
import * as callersFile from './scenarios/callers-file.ts';
import * as clocks from './scenarios/clocks.ts';
import * as drains from './scenarios/drains.ts';
import * as exports from './scenarios/exports.ts';
import * as faults from './scenarios/faults.ts';
import * as holds from './scenarios/holds.ts';
import * as keyEnds from './scenarios/key-ends.ts';
import * as lateRequests from './scenarios/late-requests.ts';
import * as movedFiles from './scenarios/moved-files.ts';
import * as namedConsumers from './scenarios/named-consumers.ts';
import * as oddRecords from './scenarios/odd-records.ts';
import * as operations from './scenarios/operations.ts';
import * as otherClients from './scenarios/other-clients.ts';
import * as outbox from './scenarios/outbox.ts';
import * as restore from './scenarios/restore.ts';
import * as retention from './scenarios/retention.ts';
import type { Scenario } from './scenarios/scenario.ts';
import * as stalledConsumers from './scenarios/stalled-consumers.ts';
import * as testStudios from './scenarios/test-studios.ts';
import * as transfers from './scenarios/transfers.ts';
import * as website from './scenarios/website.ts';

/** All scenarios, by name. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = byName([
  ...[website, otherClients, operations, exports, clocks, faults, oddRecords, transfers, outbox],
  ...[callersFile, drains, holds, keyEnds, lateRequests, movedFiles, namedConsumers, restore, retention],
  ...[stalledConsumers, testStudios],
]);

/** Sorted by name, so that a seed makes the same plan whatever the order of imports. */
function byName(files: readonly object[]): Record<string, Scenario> {
  const named = files
    .flatMap((file) => Object.entries(file).filter((entry): entry is [string, Scenario] => isScenario(entry[1])))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const twice = named.find(([name], index) => named[index + 1]?.[0] === name);
  if (twice) throw new Error(`two scenarios are called ${twice[0]}`);
  return Object.fromEntries(named);
}

function isScenario(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'run' in value;
}

/** A scenario and its delay after the previous one; milliseconds. Steps do not wait for each other. */
export interface Step {
  readonly afterMs: number;
  readonly name: string;
  readonly choice: unknown;
}

/** Everything that a seed determines about one simulation. */
export interface Plan {
  readonly quota: Quota;
  readonly drainMs: number;
  readonly logLevel: string;
  /** How long connections to cores last. */
  readonly connectionMs: number;
  readonly steps: readonly Step[];
}

/** A connection's age, so short that connections end many times; and one that most calls and faults do not outlast. */
const SHORT_MS = 1500;
const LONG_MS = 60_000;

/** The default settings, to which shrinking returns. */
export const USUAL: Omit<Plan, 'steps'> = {
  quota: { limit: 1_000_000, windowSeconds: 60 },
  drainMs: 0,
  logLevel: 'info',
  connectionMs: SHORT_MS,
};

const SMALL: Quota = { limit: 30, windowSeconds: 3 };
const QUOTAS: readonly Quota[] = [SMALL, { ...SMALL, studioLimit: 24 }, USUAL.quota, USUAL.quota];

const step: fc.Arbitrary<Step> = fc
  .record({
    afterMs: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: fc.nat(60) }),
    happening: fc.oneof(
      ...Object.entries(SCENARIOS).map(([name, { weight, choice }]) => ({
        weight,
        arbitrary: choice.map((choice) => ({ name, choice })),
      })),
    ),
  })
  .map(({ afterMs, happening }) => ({ afterMs, ...happening }));

const planOf = (length: number): fc.Arbitrary<Plan> =>
  fc.noBias(
    fc.record({
      quota: fc.constantFrom(...QUOTAS),
      drainMs: fc.constantFrom(0, 0, 0, 500, 500, 11_000),
      logLevel: fc.constantFrom('info', 'debug', 'trace'),
      steps: fc.array(step, { minLength: Math.ceil(length / 2), maxLength: length, size: 'max' }),
      connectionMs: fc.constantFrom(SHORT_MS, SHORT_MS, LONG_MS),
    }),
  );

/**
 * Returns the plan of a seed.
 *
 * @param length the maximum number of steps; at least half as many are in it
 * @param hours over how long they are spread; 0: as soon as possible
 */
export function planFrom(seed: number, length: number, hours = 0): Plan {
  const [plan] = fc.sample(planOf(length), { seed, numRuns: 1 });
  if (!plan) throw new Error(`there is no plan of ${seed}`);
  if (hours === 0) return plan;
  const { length: minLength } = plan.steps;
  const delay = fc.nat(Math.round((2 * hours * 3_600_000) / minLength));
  const [delays = []] = fc.sample(fc.noBias(fc.array(delay, { minLength, maxLength: minLength })), {
    seed,
    numRuns: 1,
  });
  return { ...plan, steps: plan.steps.map((step, index) => ({ ...step, afterMs: delays[index] ?? 0 })) };
}
