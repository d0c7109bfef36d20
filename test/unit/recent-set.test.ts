import { expect, test } from 'vitest';
import { RecentSet } from '../../src/store/mongo/recent-set.ts';
import { times } from '../support/builders.ts';

test('an entry is known until ten thousand others were seen after it', () => {
  const seen = new RecentSet();
  expect([seen.see('a'), seen.see('b'), seen.see('a')]).toEqual([false, false, true]);

  for (const name of times(9999, (index) => `other ${index}`)) seen.see(name);

  expect(seen.see('a')).toBe(true);
  expect(seen.see('b')).toBe(false);
});
