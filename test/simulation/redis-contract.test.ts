import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { QuotaUnavailable } from '../../gateway/admission/quota/quota-port.ts';
import { singleClient } from '../../gateway/admission/quota/redis-client.ts';
import { createRedisQuota } from '../../gateway/admission/quota/redis-quota.ts';
import { newId } from '../../src/domain/new-id.ts';
import { quotaContract } from '../contract/quota-contract.ts';
import { passInRedis } from '../contract/quota-of-keys.ts';
import { type RedisOnPort, redisOnPort } from './redis-on-port.ts';

describe('the simulated Redis', () => {
  let simulated: RedisOnPort;
  let redis: Redis;
  beforeAll(async () => {
    simulated = await redisOnPort();
    redis = singleClient(simulated.url);
    await redis.connect();
  });
  afterAll(() => {
    redis?.disconnect();
    simulated?.server.stop();
  });

  quotaContract('the simulated Redis', {
    open: async (windowSeconds) => createRedisQuota(windowSeconds, simulated.url, false),
    gateways: 2,
    pass: (bearer, ms) => passInRedis(redis, bearer, ms),
    redisUrl: () => simulated.url,
  });

  /** States of a Redis that answers a ping but counts nothing, with how each begins and ends. */
  const STATES: readonly [name: string, begin: (redis: RedisOnPort) => void, end: (redis: RedisOnPort) => void][] = [
    [
      'loads its data',
      ({ server }) => Object.assign(server, { isLoading: true }),
      ({ server }) => Object.assign(server, { isLoading: false }),
    ],
    [
      'is a replica',
      ({ weather }) => Object.assign(weather, { refusal: "READONLY You can't write against a read only replica." }),
      ({ weather }) => Object.assign(weather, { refusal: undefined }),
    ],
    [
      'is out of memory',
      ({ weather }) => Object.assign(weather, { refusal: "OOM command not allowed when used memory > 'maxmemory'." }),
      ({ weather }) => Object.assign(weather, { refusal: undefined }),
    ],
  ];

  // @proves redis-6
  test.each(STATES)('a quota admits nothing while Redis %s, and counts again afterwards', async (...state) => {
    const [, begin, end] = state;
    const quota = createRedisQuota(60, simulated.url, false);
    onTestFinished(() => quota.close());
    const consumed = () => quota.consume({ apiKeyId: newId(), studioId: newId() }, { key: 1, studio: undefined });
    expect(await quota.fault()).toBeUndefined();

    begin(simulated);
    onTestFinished(() => end(simulated));

    expect(await quota.fault()).toEqual(expect.any(String));
    await expect(consumed()).rejects.toBeInstanceOf(QuotaUnavailable);
    end(simulated);
    await expect.poll(() => quota.fault()).toBeUndefined();
    expect(await consumed()).toMatchObject({ admitted: true });
  });
});
