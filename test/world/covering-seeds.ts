import { type Plan, planFrom } from './plan.ts';

/** The number of candidate seeds. */
const SEEDS = 300;

/** One simulation in this many has clients that stay connected: these are the longest, and few faults need them. */
const HOLDS_IN_EACH = 3;

/**
 * Returns seeds whose plans together cover as many scenarios as possible, in as many kinds of simulations. The choice is greedy: each
 * seed adds the most to the previous ones.
 *
 * @param length the maximum number of steps of a plan
 */
export function coveringSeeds(count: number, length: number): number[] {
  const left = new Set(
    Array.from({ length: SEEDS }, (_, index) => {
      const plan = planFrom(index + 1, length);
      return { seed: index + 1, holdsConnections: plan.holdsConnections, content: contentOf(plan) };
    }),
  );
  const had = new Set<string>();
  return Array.from({ length: count }, (_, index) => {
    const mayHold = (index + 1) % HOLDS_IN_EACH === 0;
    const [next] = [...left]
      .filter(({ holdsConnections }) => holdsConnections === mayHold)
      .toSorted((a, b) => b.content.difference(had).size - a.content.difference(had).size);
    if (!next) throw new Error(`there are not ${count} such seeds`);
    left.delete(next);
    for (const each of next.content) had.add(each);
    return next.seed;
  });
}

/** Returns the combinations of scenario and setting that a plan has. */
function contentOf({ steps, quota, holdsConnections, ...settings }: Plan): Set<string> {
  const kinds = Object.entries({ quota: quota.limit, ...settings }).map(([name, value]) => `${name} ${value}`);
  return new Set(steps.flatMap(({ name }) => kinds.map((kind) => `${name}, ${kind}`)));
}
