import type { Plan, Step } from './plan.ts';
import type { PlanResult } from './run-plan.ts';

/** How often a short plan runs before it counts as passing: real processes are not deterministic. */
const TRIES = 2;

/** A plan of at most this many steps runs in one or two seconds, so a second try is cheap. */
const SHORT = 40;

/** A plan that broke a promise, and its result. */
export interface Found {
  readonly plan: Plan;
  readonly result: PlanResult;
}

/**
 * Removes from a plan what is not needed to break a promise: first ever smaller groups of steps, as in Zeller's delta
 * debugging, then unusual settings.
 *
 * @param until the deadline; milliseconds of performance.now
 */
export async function shrinkPlan(
  found: Found,
  usual: Omit<Plan, 'steps'>,
  runOnce: (plan: Plan) => Promise<PlanResult>,
  until: number,
): Promise<Found> {
  let shortest = found;
  const isBroken = async (plan: Plan): Promise<boolean> => {
    for (let tries = plan.steps.length <= SHORT ? TRIES : 1; tries > 0 && performance.now() < until; tries -= 1) {
      const result = await runOnce(plan);
      if (result.violations.length === 0) continue;
      shortest = { plan, result };
      return true;
    }
    return false;
  };
  const without = (from: number, count: number): Plan => {
    const steps: Step[] = shortest.plan.steps.toSpliced(from, count);
    return { ...shortest.plan, steps };
  };
  for (let size = Math.ceil(found.plan.steps.length / 2); size >= 1; size = Math.floor(size / 2)) {
    // From the end: most of the removable steps come after the fault.
    for (let from = shortest.plan.steps.length - size; from > -size && performance.now() < until; from -= size) {
      const start = Math.max(from, 0);
      const count = Math.min(size, from + size, shortest.plan.steps.length - 1);
      if (count > 0) await isBroken(without(start, count));
    }
  }
  for (const [name, value] of Object.entries(usual)) {
    const { plan } = shortest;
    const isUsual = JSON.stringify(plan[name as keyof Plan]) === JSON.stringify(value);
    if (!isUsual && performance.now() < until) await isBroken({ ...plan, [name]: value });
  }
  return shortest;
}
