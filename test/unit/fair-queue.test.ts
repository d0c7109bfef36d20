import { expect, test } from 'vitest';
import { FairQueue } from '../../gateway/fair-queue.ts';

function aQueue(...names: readonly string[]) {
  const queue = new FairQueue<{ readonly group: string; readonly name: string }>();
  for (const name of names) queue.push({ group: name.slice(0, 1), name });
  return { queue, take: (count: number) => queue.take(count).map(({ name }) => name) };
}

test('groups take turns, each in its order, although one came first and has most', () => {
  const { queue, take } = aQueue('a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'c2');

  expect(take(4)).toEqual(['a1', 'b1', 'c1', 'a2']);
  expect(queue.length).toBe(3);
  queue.push({ group: 'b', name: 'b2' });
  expect(take(3)).toEqual(['c2', 'a3', 'b2']);
  expect(take(9)).toEqual(['a4']);
  expect(take(9)).toEqual([]);
  expect(queue.length).toBe(0);
});

test('a group alone is a queue', () => {
  const { take } = aQueue('a1', 'a2', 'a3');

  expect([take(2), take(2)]).toEqual([['a1', 'a2'], ['a3']]);
});
