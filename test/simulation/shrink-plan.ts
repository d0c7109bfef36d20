import type { Plan } from './plan.ts';
import type { PlanResult } from './run-plan.ts';

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
  const tryPlan = async (plan: Plan) => {
    if (performance.now() > until) return;
    const result = await runOnce(plan);
    if (result.violations.length > 0) shortest = { plan, result };
  };
  for (let size = Math.ceil(found.plan.steps.length / 2); size >= 1; size = Math.floor(size / 2)) {
    // From the end: most of the removable steps come after the fault.
    for (let from = shortest.plan.steps.length - size; from > -size; from -= size) {
      const { steps } = shortest.plan;
      const count = Math.min(size, from + size, steps.length - 1);
      if (count > 0) await tryPlan({ ...shortest.plan, steps: steps.toSpliced(Math.max(from, 0), count) });
    }
  }
  for (const [name, value] of Object.entries(usual)) {
    const isUsual = JSON.stringify(shortest.plan[name as keyof Plan]) === JSON.stringify(value);
    if (!isUsual) await tryPlan({ ...shortest.plan, [name]: value });
  }
  return shortest;
}
