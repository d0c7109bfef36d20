import { setTimeout as sleep } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import type { FastifyRequest } from 'fastify';
import { describe, expect, onTestFinished, test } from 'vitest';
import { API_KEY_CACHE_MS } from '../../common/deadlines.ts';
import { hashKeySecret, newKeySecret } from '../../common/rules/key-secret.ts';
import { ApiKeyCache, authenticator } from '../../gateway/admission/authentication.ts';
import { KeyLookUps } from '../../gateway/admission/key-look-ups.ts';
import { OVERLOADED, Problem } from '../../gateway/problems.ts';
import {
  type AuthenticateApiKeyResponse,
  AuthenticateApiKeyResponseSchema,
} from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { times } from '../support/builders.ts';

const REVOKED = new Problem('integration_key_invalid');
const caller = create(AuthenticateApiKeyResponseSchema, { apiKeyId: 'one' });
const sender = (secret = 'one') => ({ secretSha256: hashKeySecret(secret), requestId: 'request' });

/** Returns look-ups at a core that answers when the test tells it to. */
function lookUpsAtCore() {
  const asked: PromiseWithResolvers<AuthenticateApiKeyResponse>[] = [];
  const lookUps = new KeyLookUps(() => {
    const answer = Promise.withResolvers<AuthenticateApiKeyResponse>();
    asked.push(answer);
    return answer.promise;
  });
  return { lookUps, asked };
}

/** Runs everything that does not wait for an answer. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

// @proves bounds-191
test('one look-up serves all concurrent requests of a key, and counts as a check for the first', async () => {
  const { lookUps, asked } = lookUpsAtCore();
  const found = times(100, () => lookUps.find(sender()));
  expect([asked.length, lookUps.waiting]).toEqual([1, 100]);
  asked[0]?.resolve(caller);

  expect(await Promise.all(found)).toEqual(
    times(100, (index) => ({ kind: index === 0 ? 'checked' : 'remembered', caller })),
  );
  expect([asked.length, lookUps.waiting]).toEqual([1, 0]);
  lookUps.find(sender());
  expect(asked.length).toBe(2);
});

// @proves bounds-191
test('requests that come while a key turns out invalid share one more look-up', async () => {
  const { lookUps, asked } = lookUpsAtCore();
  const first = lookUps.find(sender());
  const later = times(100, () => lookUps.find(sender()));
  const outcomes = Promise.allSettled([first, ...later]);
  asked[0]?.reject(REVOKED);
  await settle();
  asked[1]?.resolve(caller);

  expect(await outcomes).toEqual([
    { status: 'rejected', reason: REVOKED },
    ...times(100, () => ({ status: 'fulfilled', value: { kind: 'checked', caller } })),
  ]);
  expect(asked.length).toBe(2);
});

// @proves bounds-191
test('checks made during a look-up share the next one', async () => {
  const { lookUps, asked } = lookUpsAtCore();
  const first = lookUps.find(sender(), true);
  const later = Promise.allSettled([...times(100, () => lookUps.find(sender(), true)), lookUps.find(sender())]);
  asked[0]?.resolve(caller);
  expect(await first).toMatchObject({ caller });
  await settle();
  asked[1]?.reject(REVOKED);

  expect(await later).toEqual([
    ...times(100, () => ({ status: 'rejected', reason: REVOKED })),
    { status: 'fulfilled', value: { kind: 'remembered', caller } },
  ]);
  expect(asked.length).toBe(2);
});

test('requests that wait for a failed look-up fail with it, and other keys do not wait', async () => {
  const { lookUps, asked } = lookUpsAtCore();
  const outcomes = Promise.allSettled([
    lookUps.find(sender()),
    lookUps.find(sender()),
    lookUps.find(sender(), true),
    lookUps.find(sender('another')),
  ]);
  asked[0]?.reject(OVERLOADED);
  asked[1]?.resolve(caller);

  const none = { status: 'rejected', reason: OVERLOADED };
  expect(await outcomes).toEqual([none, none, none, { status: 'fulfilled', value: { kind: 'checked', caller } }]);
  expect(asked.length).toBe(2);
});

/** Requests from one address, each with a key that is new to the gateway. */
function requestsWithNewKeys(lookUps: KeyLookUps) {
  const authenticate = authenticator(lookUps, new ApiKeyCache(API_KEY_CACHE_MS));
  return async () => {
    const raw = { rawHeaders: ['authorization', `Bearer ${newKeySecret()}`] };
    return authenticate({ raw, id: 'request', clientAddress: '192.0.2.1' } as unknown as FastifyRequest);
  };
}

describe('keys that are new to a gateway', () => {
  // @proves bounds-25
  test('no new key is refused because of other keys of its address, however slow the core is', async () => {
    const { lookUps, asked } = lookUpsAtCore();
    const identify = requestsWithNewKeys(lookUps);
    const identified = times(700, identify);
    await expect.poll(() => asked.length).toBe(250);
    await sleep(100);
    expect(asked.length).toBe(250);
    const answering = setInterval(() => {
      for (const answer of asked) answer.resolve(caller);
    }, 20);
    onTestFinished(() => clearInterval(answering));

    expect(await Promise.all(identified)).toHaveLength(700);
    expect(await identify()).toMatchObject({ key: { caller } });
  });

  // @proves bounds-25
  test('new keys that wait for others are refused as overloaded when the core never answers', async () => {
    const { lookUps, asked } = lookUpsAtCore();
    const identify = requestsWithNewKeys(lookUps);
    for (const identified of times(250, identify)) identified.catch(() => {});
    await expect.poll(() => asked.length).toBe(250);
    await expect(identify()).rejects.toBe(OVERLOADED);
    expect(asked.length).toBe(250);
  });
});
