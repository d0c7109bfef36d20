import { type Plan, planFrom } from './plan.ts';

/** The number of candidate seeds. */
const SEEDS = 300;

/**
 * Returns seeds whose plans together cover as many scenarios as possible, in as many kinds of simulations. The choice is greedy: each
 * seed adds the most to the previous ones.
 *
 * @param length the maximum number of steps of a plan
 */
export function coveringSeeds(count: number, length: number): number[] {
  const left = new Set(
    Array.from({ length: SEEDS }, (_, index) => {
      return { seed: index + 1, content: contentOf(planFrom(index + 1, length)) };
    }),
  );
  const had = new Set<string>();
  return Array.from({ length: count }, () => {
    const [next] = [...left].toSorted((a, b) => b.content.difference(had).size - a.content.difference(had).size);
    if (!next) throw new Error(`there are not ${count} such seeds`);
    left.delete(next);
    for (const each of next.content) had.add(each);
    return next.seed;
  });
}

/** Returns the combinations of scenario and setting that a plan has. */
function contentOf({ steps, quota, ...settings }: Plan): Set<string> {
  const kinds = Object.entries({ quota: quota.limit, ...settings }).map(([name, value]) => `${name} ${value}`);
  return new Set(steps.flatMap(({ name }) => kinds.map((kind) => `${name}, ${kind}`)));
}
