import { expect, test } from 'vitest';
import { changedByTime } from '../../src/store/mongo/by-time.ts';
import type { Collections } from '../../src/store/mongo/collections.ts';
import { ACKNOWLEDGED } from '../../src/store/mongo/lead-documents.ts';
import { times } from '../support/builders.ts';

/** The number of leads that the engine can sort in time. */
const SORTABLE = 2500;

interface BelowCeiling {
  readonly 'changes.since': { readonly $lt: Date };
}

/** An engine that sorts all matches of a query, and fails if there are too many. */
class SortingEngine {
  readonly pending = new Set<number>();
  sorted = 0;

  failed = 0;
  counts = 0;

  #below(filter: BelowCeiling): number[] {
    return [...this.pending].filter((time) => time < filter['changes.since'].$lt.getTime());
  }

  readonly leads = {
    countDocuments: async (filter: BelowCeiling, { limit }: { readonly limit: number }) => {
      this.counts += 1;
      return Math.min(this.#below(filter).length, limit);
    },
    find: (filter: BelowCeiling, { limit }: { readonly limit: number }) => ({
      toArray: async () => {
        const matching = this.#below(filter);
        if (matching.length > SORTABLE) {
          this.failed += 1;
          throw new Error('sorting took too long');
        }
        this.sorted += matching.length;
        return matching
          .sort((a, b) => a - b)
          .slice(0, limit)
          .map((time) => ({ changes: { since: new Date(time) } }));
      },
    }),
  } as unknown as Collections['leads'];
}

const NOW = Date.now();
const LEADS = 20_000;

/** Retries until the engine succeeds, as callers do. */
async function find(changes: ReturnType<typeof changedByTime>, count: number): Promise<number[]> {
  for (let attempt = 0; attempt < 60; attempt += 1) {
    const found = await changes.first(count).catch(() => undefined);
    if (found) return found.map(({ changes: { since } = {} }) => since?.getTime() ?? Number.NaN);
  }
  throw new Error('no attempt succeeded');
}

// @proves feed-8
test.each([
  ['an hour', 3_600_000],
  ['ten years', 3_650 * 86_400_000],
])('reads 20,000 leads of %s in order, even if the engine cannot sort them all', async (_, span) => {
  const engine = new SortingEngine();
  for (const index of times(LEADS, (index) => index)) {
    engine.pending.add(NOW - span + Math.floor((index * span) / LEADS));
  }
  const inOrder = [...engine.pending].sort((a, b) => a - b);
  const changes = changedByTime(engine);

  const taken: number[] = [];
  while (engine.pending.size > 0) {
    const found = await find(changes, 200);
    for (const time of found) engine.pending.delete(time);
    taken.push(...found);
  }

  expect(taken).toEqual(inOrder);
  // Sorting all of them in each call would be 1,000,000.
  expect(engine.sorted).toBeLessThan(12 * inOrder.length);
  expect(engine.failed).toBe(1);
  expect(engine.counts).toBeLessThan(50);
});

test('concurrent reads do not take a query in flight for a failed one', async () => {
  const engine = new SortingEngine();
  engine.pending.add(NOW);
  const changes = changedByTime(engine);
  const found = await Promise.all(times(16, () => find(changes, 100)));
  expect(found).toEqual(times(16, () => [NOW]));
  expect(engine.counts).toBe(0);
});

test('finds changes before or after all those found so far', async () => {
  const engine = new SortingEngine();
  for (const index of times(1000, (index) => index)) engine.pending.add(NOW - 1_000_000 + index);
  const changes = changedByTime(engine);
  await find(changes, 100);
  engine.pending.clear();

  for (const time of [NOW, NOW + 10 * 365 * 86_400_000, 1, ACKNOWLEDGED.getTime() - 1]) {
    engine.pending.add(time);
    expect(await find(changes, 100)).toEqual([time]);
    engine.pending.delete(time);
  }
  expect(await find(changes, 100)).toEqual([]);
});
