import { expect, test } from 'vitest';
import { nextUpdate } from '../../src/domain/lead.ts';
import { NOW, plus } from '../support/builders.ts';

test.each([
  ['a day later', 86_400_000, 86_400_000],
  ['a millisecond later', 1, 1],
  ['at the same millisecond', 0, 1],
  ['a millisecond earlier', -1, 1],
  ['a year earlier', -31_536_000_000, 1],
])('an update requested %s is later than the previous one', (_, ahead, grows) => {
  expect(nextUpdate(NOW, plus(NOW, ahead))).toEqual(plus(NOW, grows));
});
