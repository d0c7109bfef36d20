import { expect, test } from 'vitest';
import { RecentSet } from '../../src/store/mongo/recent-set.ts';
import { times } from '../support/builders.ts';

test('an entry is known until ten thousand others were seen after it', () => {
  const seen = new RecentSet();
  expect([seen.add('a'), seen.add('b'), seen.add('a')]).toEqual([false, false, true]);

  for (const name of times(9999, (index) => `other ${index}`)) seen.add(name);

  expect(seen.add('a')).toBe(true);
  expect(seen.add('b')).toBe(false);
});
