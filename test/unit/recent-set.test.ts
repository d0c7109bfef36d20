import { expect, test } from 'vitest';
import { recentNames } from '../../src/store/mongo/leads.ts';
import { times } from '../support/builders.ts';

// @proves bounds-22
test('an entry is kept until ten thousand others are added after it', () => {
  const recent = recentNames();
  expect([recent.add('a'), recent.add('b'), recent.add('a')]).toEqual([false, false, true]);

  for (const name of times(9999, (index) => `other ${index}`)) recent.add(name);

  expect(recent.add('a')).toBe(true);
  expect(recent.add('b')).toBe(false);
});
