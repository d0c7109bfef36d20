import fc from 'fast-check';
import type { Quota } from './promises/quota.ts';
import * as files from './scenarios/all.ts';
import type { Scenario } from './scenarios/scenario.ts';

/** All scenarios by name, sorted so that a seed makes the same plan whatever the order of files. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = Object.fromEntries(
  Object.entries<unknown>(files)
    .filter((entry): entry is [string, Scenario] => isScenario(entry[1]))
    .sort(([a], [b]) => (a < b ? -1 : 1)),
);

function isScenario(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'run' in value;
}

/** A scenario with its parameters. */
interface Happening {
  readonly name: string;
  readonly choice: unknown;
}

/** A scenario with its delay after the previous one; milliseconds. Steps do not wait for each other. */
export interface Step extends Happening {
  readonly afterMs: number;
}

/** Everything that a seed determines about one life. */
export interface Plan {
  readonly quota: Quota;
  readonly drainMs: number;
  readonly logLevel: string;
  /** The maximum age of connections to cores; milliseconds. */
  readonly connectionMs: number;
  /** The share of events of cores, gateways and commands that take time: 1 to 300 ms. */
  readonly busyShare: number;
  readonly steps: readonly Step[];
}

/** An age at which connections end many times in a life, and one that outlasts most calls and faults; milliseconds. */
const SHORT_MS = 1500;
const LONG_MS = 60_000;

/** The usual settings, to which shrinking returns. */
export const USUAL: Omit<Plan, 'steps'> = {
  quota: { limit: 1_000_000, windowSeconds: 60 },
  drainMs: 0,
  logLevel: 'info',
  connectionMs: SHORT_MS,
  busyShare: 0,
};

const SMALL: Quota = { limit: 30, windowSeconds: 3 };
const QUOTAS: readonly Quota[] = [SMALL, { ...SMALL, studioLimit: 24 }, USUAL.quota, USUAL.quota];

const weighted = (scenarios: Readonly<Record<string, Scenario>>, isLong: boolean): fc.Arbitrary<Happening> =>
  fc.oneof(
    ...Object.entries(scenarios).map(([name, { weight, weightOfHours = weight, choice }]) => ({
      weight: isLong ? weightOfHours : weight,
      arbitrary: choice.map((choice) => ({ name, choice })),
    })),
  );

const aStep = (happening: fc.Arbitrary<Happening>): fc.Arbitrary<Step> =>
  fc
    .record({
      afterMs: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: fc.nat(60) }),
      happening,
    })
    .map(({ afterMs, happening }) => ({ afterMs, ...happening }));

/** Chooses a scenario; with `often`, every second time that one on average. */
function happeningWith(often: string | undefined, isLong: boolean): fc.Arbitrary<Happening> {
  const scenario = often === undefined ? undefined : SCENARIOS[often];
  if (!scenario) return weighted(SCENARIOS, isLong);
  return fc.oneof(weighted(SCENARIOS, isLong), weighted({ [`${often}`]: { ...scenario, weight: 1 } }, false));
}

const aPlan = (length: number, isLong: boolean, often?: string): fc.Arbitrary<Plan> =>
  fc.noBias(
    fc.record({
      quota: fc.constantFrom(...QUOTAS),
      drainMs: fc.constantFrom(0, 0, 0, 500, 500, 11_000),
      logLevel: fc.constantFrom('info', 'debug', 'trace'),
      steps: fc.array(aStep(happeningWith(often, isLong)), {
        minLength: Math.ceil(length / 2),
        maxLength: length,
        size: 'max',
      }),
      connectionMs: fc.constantFrom(SHORT_MS, SHORT_MS, LONG_MS),
      busyShare: fc.constantFrom(0, 0.0005, 0.005),
    }),
  );

/**
 * Returns the plan of a seed.
 *
 * @param length the maximum number of steps; a plan has at least half as many
 * @param hours the total duration of the steps; 0: as short as possible
 * @param often a scenario that is every second step
 */
export function planFrom(seed: number, length: number, hours = 0, often?: string): Plan {
  const [plan] = fc.sample(aPlan(length, hours > 0, often), { seed, numRuns: 1 });
  if (!plan) throw new Error(`seed ${seed} has no plan`);
  if (hours === 0) return plan;
  const { length: minLength } = plan.steps;
  const delay = fc.nat(Math.round((2 * hours * 3_600_000) / minLength));
  const [delays = []] = fc.sample(fc.noBias(fc.array(delay, { minLength, maxLength: minLength })), {
    seed,
    numRuns: 1,
  });
  return { ...plan, steps: plan.steps.map((step, index) => ({ ...step, afterMs: delays[index] ?? 0 })) };
}
