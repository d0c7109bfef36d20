import { randomInt } from 'node:crypto';
import { type Plan, planFrom, USUAL } from './plan.ts';
import { type PlanResult, runPlan, type StartWorld } from './run-plan.ts';
import { shrinkPlan } from './shrink-plan.ts';

/** The maximum number of steps of a simulation. */
export const STEPS = Number(process.env.WORLD_STEPS ?? 160);

/** The time limit for shrinking a plan that broke a promise; milliseconds. */
const SHRINKS_FOR_MS = Number(process.env.WORLD_SHRINK_SECONDS ?? 120) * 1000;

/** A simulation in which a promise was broken. */
export interface Failure {
  readonly seed: number;
  /** The number of the simulation, from 1. */
  readonly number: number;
  /** The shortest known plan that breaks a promise; `broken` and `trace` belong to it. */
  readonly plan: Plan;
  readonly violations: readonly string[];
  readonly trace: string;
}

/**
 * Runs one simulation after the other until a promise is broken or the time is over.
 *
 * @param seeds the seeds of the first simulations; later ones are random
 * @param report receives a line of progress after each simulation
 */
export async function runSimulations(
  seconds: number,
  seeds: readonly number[],
  startWorld: StartWorld,
  report: (line: string) => void,
): Promise<{ readonly simulations: number; readonly failure: Failure | undefined }> {
  const begin = performance.now();
  for (let number = 1; ; number += 1) {
    const seed = seeds[number - 1] ?? randomInt(2 ** 31);
    const simulationBegin = performance.now();
    const { failure, unknown } = await failureOf(seed, startWorld);
    const result = failure ? 'a promise is broken' : 'every promise is kept';
    const unchecked = unknown.length > 0 ? `, not checked, because the search gave up: ${unknown.join(', ')}` : '';
    const secondsSince = (since: number) => Math.round((performance.now() - since) / 1000);
    const [took, all] = [secondsSince(simulationBegin), secondsSince(begin)] as const;
    report(`simulation ${number}, WORLD_SEED=${seed}: ${result}${unchecked}, ${took} s (${all} of ${seconds} s)`);
    if (failure) return { simulations: number, failure: { ...failure, seed, number } };
    if (all >= seconds && number >= seeds.length) return { simulations: number, failure: undefined };
  }
}

/** Runs the plan of a seed; when it breaks a promise, shrinks it to a shorter one that breaks one, too. */
async function failureOf(
  seed: number,
  startWorld: StartWorld,
): Promise<{
  readonly failure: Pick<Failure, 'plan' | 'violations' | 'trace'> | undefined;
  readonly unknown: readonly string[];
}> {
  let count = 0;
  const runOnce = async (plan: Plan): Promise<PlanResult> => {
    count += 1;
    return runPlan(plan, `${seed}-${count}`, startWorld).catch((error) => ({
      violations: [`the simulation cannot run: ${error.stack}`],
      unknown: [],
      trace: '',
    }));
  };
  const plan = planFrom(seed, STEPS);
  const result = await runOnce(plan);
  const { unknown } = result;
  if (result.violations.length === 0) return { failure: undefined, unknown };
  const shortest = await shrinkPlan({ plan, result }, USUAL, runOnce, performance.now() + SHRINKS_FOR_MS);
  return { failure: { plan: shortest.plan, ...shortest.result }, unknown };
}
