import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { API_KEY_CACHE_MS } from '../../common/deadlines.ts';
import { hashKeySecret } from '../../common/rules/key-secret.ts';
import { ApiKeyCache, MAX_CACHED_KEYS } from '../../gateway/admission/authentication.ts';
import { AuthenticateApiKeyResponseSchema } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { times } from '../support/builders.ts';

const callerOf = (apiKeyId: string) => create(AuthenticateApiKeyResponseSchema, { apiKeyId });

// @proves bounds-24
test('evicts the oldest entry when it is full', () => {
  const cache = new ApiKeyCache(API_KEY_CACHE_MS);
  const hashes = times(MAX_CACHED_KEYS + 1, (index) => hashKeySecret(`key ${index}`));

  for (const [index, hash] of hashes.entries()) cache.set(hash, callerOf(`${index}`));

  const [first, second, last] = [0, 1, -1].map((index) => hashes.at(index) as Uint8Array);
  expect(cache.get(first as Uint8Array)).toBeUndefined();
  expect(cache.get(second as Uint8Array)?.apiKeyId).toBe('1');
  expect(cache.get(last as Uint8Array)?.apiKeyId).toBe(`${MAX_CACHED_KEYS}`);
});

// @proves quota-3
test('an entry expires after its lifetime, however often it is read, and can be set again', () => {
  let nowMs = 5;
  const cache = new ApiKeyCache(100, () => nowMs);
  const secret = hashKeySecret('one');
  cache.set(secret, callerOf('before'));

  for (; nowMs < 105; nowMs += 1) expect(cache.get(secret)?.apiKeyId).toBe('before');
  expect(cache.get(secret)).toBeUndefined();

  cache.set(secret, callerOf('after'));
  nowMs += 99;
  expect(cache.get(secret)?.apiKeyId).toBe('after');
});
