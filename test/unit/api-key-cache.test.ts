import { expect, test } from 'vitest';
import { API_KEY_CACHE_MS } from '../../common/deadlines.ts';
import { ApiKeyCache, MAX_CACHED_KEYS } from '../../gateway/admission/authentication.ts';
import { times } from '../support/builders.ts';

// @proves bounds-24
test('a full key cache evicts its oldest entry', () => {
  const cache = new ApiKeyCache<number>(API_KEY_CACHE_MS);
  const numbers = times(MAX_CACHED_KEYS + 1, (index) => index);

  for (const index of numbers) cache.set(`key ${index}`, index);

  expect([cache.has('key 0'), cache.get('key 0')]).toEqual([false, undefined]);
  for (const index of [1, MAX_CACHED_KEYS]) expect(cache.get(`key ${index}`)).toBe(index);
});

// @proves quota-3
test('a cached key expires after its lifetime, however often it is read, and can be set again', () => {
  let nowMs = 5;
  const cache = new ApiKeyCache<string>(100, () => nowMs);
  cache.set('key', 'before');

  for (; nowMs < 105; nowMs += 1) expect(cache.get('key')).toBe('before');
  expect([cache.has('key'), cache.get('key')]).toEqual([true, undefined]);

  cache.set('key', 'after');
  nowMs += 99;
  expect(cache.get('key')).toBe('after');
});
