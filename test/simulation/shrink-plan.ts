import type { Plan } from './plan.ts';

/**
 * Removes the parts of a plan that are not needed to break a promise: first smaller and smaller groups of steps (Zeller's
 * delta debugging), then unusual settings.
 *
 * @param mayTry whether there is time for another life
 */
export async function shrinkPlan(
  found: Plan,
  usual: Omit<Plan, 'steps'>,
  isBroken: (plan: Plan) => Promise<boolean>,
  mayTry: () => boolean,
): Promise<Plan> {
  let shortest = found;
  const tryPlan = async (plan: Plan) => {
    if (mayTry() && (await isBroken(plan))) shortest = plan;
  };
  for (let size = Math.ceil(found.steps.length / 2); size >= 1; size = Math.floor(size / 2)) {
    // From the end, because most of the removable steps come after the fault.
    for (let from = shortest.steps.length - size; from > -size; from -= size) {
      const { steps } = shortest;
      const count = Math.min(size, from + size, steps.length - 1);
      if (count > 0) await tryPlan({ ...shortest, steps: steps.toSpliced(Math.max(from, 0), count) });
    }
  }
  for (const [name, value] of Object.entries(usual)) {
    const isUsual = JSON.stringify(shortest[name as keyof Plan]) === JSON.stringify(value);
    if (!isUsual) await tryPlan({ ...shortest, [name]: value });
  }
  return shortest;
}
