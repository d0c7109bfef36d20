import { describe, expect, test } from 'vitest';
import { expiryFault, isLive } from '../../src/domain/api-key.ts';
import { anApiKey, DAY_MS, NOW, plus } from '../support/builders.ts';

describe('a key', () => {
  const key = anApiKey({ expiresAt: plus(NOW, 1000) });

  test('is live until the millisecond of its expiry', () => {
    expect(isLive(key, plus(NOW, 999))).toBe(true);
    expect(isLive(key, plus(NOW, 1000))).toBe(false);
  });
});

describe('the expiry of a new key', () => {
  test.each([1, DAY_MS, 366 * DAY_MS - 1, 366 * DAY_MS])('may be %i ms ahead', (ahead) => {
    expect(expiryFault(plus(NOW, ahead), NOW)).toBeUndefined();
  });

  test.each([
    [0, /future/],
    [-1, /future/],
    [366 * DAY_MS + 1, /at most 366 days/],
    [Number.NaN, /point in time/],
  ])('may not be %d ms ahead', (ahead, fault) => {
    expect(expiryFault(plus(NOW, ahead), NOW)).toMatch(fault);
  });
});
