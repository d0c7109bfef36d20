import { expect, test } from 'vitest';
import { nextUpdate } from '../../src/domain/lead.ts';
import { DAY_MS, NOW, plus } from '../support/builders.ts';

test('each update is later than the previous one, whatever the clock', () => {
  expect(nextUpdate(NOW, plus(NOW, DAY_MS))).toEqual(plus(NOW, DAY_MS));
  for (const ms of [1, 0, -1, -365 * DAY_MS]) expect(nextUpdate(NOW, plus(NOW, ms))).toEqual(plus(NOW, 1));
});
