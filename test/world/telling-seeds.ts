import fc from 'fast-check';
import { type Plan, planOf } from './plan.ts';

/** From how many seeds they are chosen. */
const SEEDS = 300;

/**
 * Seeds of plans in which together as much as possible happens, in as many kinds of lives: each adds more than any other to
 * those before it.
 *
 * @param length how many steps a plan has at most
 */
export function tellingSeeds(count: number, length: number): number[] {
  const left = new Map(
    Array.from({ length: SEEDS }, (_, index) => {
      const [plan] = fc.sample(planOf(length), { seed: index + 1, numRuns: 1 });
      return [index + 1, plan ? contentOf(plan) : new Set<string>()];
    }),
  );
  const had = new Set<string>();
  return Array.from({ length: count }, () => {
    const [next] = [...left].toSorted(([, a], [, b]) => b.difference(had).size - a.difference(had).size);
    const [seed, content] = next ?? [1, []];
    left.delete(seed);
    for (const each of content) had.add(each);
    return seed;
  });
}

/** What happens in a plan, and in what kind of life. */
function contentOf({ steps, quota, ...settings }: Plan): Set<string> {
  const kinds = Object.entries({ quota: quota.limit, ...settings }).map(([name, value]) => `${name} ${value}`);
  return new Set(steps.flatMap(({ name }) => kinds.map((kind) => `${name}, ${kind}`)));
}
