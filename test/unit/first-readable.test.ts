import { describe, expect, test } from 'vitest';
import { firstReadable } from '../../src/store/pages.ts';
import { times } from '../support/builders.ts';

/** A queue of numbers. Those in `unreadable` cannot be read. */
class NumberedQueue {
  readonly records: number[];
  readonly unreadable: Set<number>;
  reads = 0;
  largestRead = 0;
  nowMs = 0;

  constructor(length: number, isUnreadable: (record: number) => boolean) {
    this.records = times(length, (index) => index);
    this.unreadable = new Set(this.records.filter(isUnreadable));
  }

  readonly read = firstReadable<number, number, { readonly at: number }>(
    {
      first: (count) => this.#read(-1, count),
      behind: (position, count) => this.#read(position?.at ?? -1, count),
      toPosition: (at) => ({ at }),
      check: (record) => (this.unreadable.has(record) ? null : record),
    },
    () => this.nowMs,
  );

  #read(above: number, count: number): number[] {
    this.reads += 1;
    this.largestRead = Math.max(this.largestRead, count);
    return this.records.filter((record) => record > above).slice(0, count);
  }

  /** Reads until something is found. Returns it and the number of calls. */
  async readSome(limit: number) {
    for (let calls = 1; calls <= 100; calls += 1) {
      const found = await this.read(limit);
      if (found.length > 0) return { found, calls };
    }
    throw new Error('nothing was found');
  }
}

// @proves limits-2
describe('the first readable records of a queue', () => {
  test('reads the first readable records in order, up to the limit', async () => {
    const queue = new NumberedQueue(1000, (record) => record % 10 !== 0);

    expect(await queue.read(20)).toEqual(times(20, (index) => index * 10));
    expect(await queue.read(2000)).toEqual(times(100, (index) => index * 10));
  });

  // @proves bounds-52
  test.each([1500, 5000, 50_000])('finds records behind %i unreadable ones in calls of bounded cost', async (odd) => {
    const queue = new NumberedQueue(odd + 5, (record) => record < odd);

    const { found, calls } = await queue.readSome(200);

    expect(found).toEqual(times(5, (index) => odd + index));
    expect(calls).toBe(Math.floor(odd / 5000) + 1);
    expect(queue.reads).toBeLessThanOrEqual(11 * calls);
    expect(queue.largestRead).toBe(500);
    // Later calls need not skip as many again.
    const { reads } = queue;
    expect(await queue.read(200)).toEqual(found);
    expect(queue.reads - reads).toBeLessThanOrEqual(11);
  });

  test('starts from the beginning again later, in case a skipped record became readable', async () => {
    const queue = new NumberedQueue(6000, (record) => record < 5990);
    await queue.readSome(200);
    queue.unreadable.delete(7);
    expect((await queue.readSome(200)).found).not.toContain(7);

    queue.nowMs += 60_000;

    expect(await queue.read(200)).toContain(7);
  });
});
