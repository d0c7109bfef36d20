import { expect, test } from 'vitest';
import { recentNames } from '../../src/store/mongo/leads.ts';
import { times } from '../support/builders.ts';

// @proves bounds-22
test('remembers an entry until five thousand others are added, and at most until ten thousand', () => {
  const recent = recentNames();
  expect([recent.add('a'), recent.add('b'), recent.add('a')]).toEqual([false, false, true]);

  for (const name of times(4999, (index) => `other ${index}`)) recent.add(name);
  expect(recent.add('a')).toBe(true);
  for (const name of times(5000, (index) => `another ${index}`)) recent.add(name);

  expect(recent.add('b')).toBe(false);
});
