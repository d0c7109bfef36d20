import { expect, test } from 'vitest';
import { expiryFault, isLive } from '../../src/domain/api-key.ts';
import { anApiKey, DAY_MS, NOW, plus } from '../support/builders.ts';

test('a key is live until the millisecond of its expiry', () => {
  const key = anApiKey({ expiresAt: plus(NOW, 1000) });
  expect([999, 1000].map((ms) => isLive(key, plus(NOW, ms)))).toEqual([true, false]);
});

test('a new key expires within 366 days', () => {
  const faultAt = (ms: number) => expiryFault(plus(NOW, ms), NOW);
  for (const ms of [1, 366 * DAY_MS]) expect(faultAt(ms)).toBeUndefined();
  for (const ms of [0, -1]) expect(faultAt(ms)).toMatch(/future/);
  expect(faultAt(366 * DAY_MS + 1)).toMatch(/at most 366 days/);
  expect(faultAt(Number.NaN)).toMatch(/point in time/);
});
