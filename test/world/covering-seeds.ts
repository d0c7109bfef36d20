import { type Plan, planFrom } from './plan.ts';

/** From how many seeds they are chosen. */
const SEEDS = 300;

/** Somebody stays in each so manieth: such lives last longest, and little is found in them alone. */
const STAYS_IN_EACH = 3;

/**
 * Seeds of plans in which together as much as possible happens, in as many kinds of lives: each adds more than any other to
 * those before it.
 *
 * @param length how many steps a plan has at most
 */
export function coveringSeeds(count: number, length: number): number[] {
  const left = new Set(
    Array.from({ length: SEEDS }, (_, index) => {
      const plan = planFrom(index + 1, length);
      return { seed: index + 1, stays: plan.stays, content: contentOf(plan) };
    }),
  );
  const had = new Set<string>();
  return Array.from({ length: count }, (_, index) => {
    const mayStay = (index + 1) % STAYS_IN_EACH === 0;
    const [next] = [...left]
      .filter(({ stays }) => stays === mayStay)
      .toSorted((a, b) => b.content.difference(had).size - a.content.difference(had).size);
    if (!next) throw new Error(`there are not ${count} such seeds`);
    left.delete(next);
    for (const each of next.content) had.add(each);
    return next.seed;
  });
}

/** What happens in a plan, and in what kind of life. */
function contentOf({ steps, quota, stays, ...settings }: Plan): Set<string> {
  const kinds = Object.entries({ quota: quota.limit, ...settings }).map(([name, value]) => `${name} ${value}`);
  return new Set(steps.flatMap(({ name }) => kinds.map((kind) => `${name}, ${kind}`)));
}
