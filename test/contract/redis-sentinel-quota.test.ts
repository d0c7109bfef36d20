import { expect, onTestFinished, test } from 'vitest';
import { REDIS_TIMEOUT_MS } from '../../common/deadlines.ts';
import { openQuota } from '../../gateway/admission/quota/open-quota.ts';
import { QuotaUnavailable } from '../../gateway/admission/quota/quota-port.ts';
import { createRedisQuota } from '../../gateway/admission/quota/redis-quota.ts';
import { newId } from '../../src/domain/new-id.ts';
import { type RedisWithSentinel, replicationOf, startRedisWithSentinel } from '../support/redis-sentinel.ts';
import { describeWithRedisServer } from '../tools/servers.ts';
import { startProxy } from '../tools/tcp-proxy.ts';
import { quotaOfKeys } from './quota-of-keys.ts';

/** The requests of a key in a window. */
const LIMIT = 10;

describeWithRedisServer('Redis quota with sentinels', () => {
  // @proves quota-11
  test('the replica takes over with its counts, for the same gateway, and nothing is admitted meanwhile', async () => {
    const redis = await startRedisWithSentinel();
    onTestFinished(() => redis.stop());
    const [quota, apiKeyId] = [open(redis), newId()];
    expect(await admitted(quota, apiKeyId, 4)).toBe(4);
    await replicated(redis);

    await redis.primary.kill();
    await expect(quota.consume(apiKeyId)).rejects.toBeInstanceOf(QuotaUnavailable);

    await expectRecovered(quota);
    expect(await admitted(quota, apiKeyId, LIMIT)).toBe(LIMIT - 4);
  });

  // @proves redis-5
  test('without sentinels a connected gateway works, and a new one refuses immediately', async () => {
    const redis = await startRedisWithSentinel();
    onTestFinished(() => redis.stop());
    const quota = open(redis);
    expect(await quota.fault()).toBeUndefined();
    await redis.killSentinel();
    expect(await quota.fault()).toBeUndefined();

    const late = open(redis);
    // As the log has it, and without what changes with each attempt.
    expect(await late.fault()).toMatch(/All sentinels are unreachable\. Last error/);
    await expect(late.consume(newId())).rejects.toThrow(/All sentinels are unreachable/);
    await redis.restartSentinel();

    await expectRecovered(late);
  });

  test('a quota is open once its first connection attempt has succeeded, so that its first request is counted', async () => {
    const redis = await startRedisWithSentinel();
    onTestFinished(() => redis.stop());
    const proxy = await startProxy('127.0.0.1', Number(new URL(`redis://${redis.url.split(',')[1]}`).port));
    onTestFinished(() => proxy.stop());
    proxy.silence();
    setTimeout(() => proxy.heal(), 2 * REDIS_TIMEOUT_MS);

    const url = redis.url.replace(/:\d+\/quota$/, `:${proxy.port}/quota`);
    const quota = quotaOfKeys(await openQuota(600, url, false), LIMIT);
    onTestFinished(() => quota.close());

    await expect(quota.consume(newId())).resolves.toMatchObject({ admitted: true });
  });
});

function open({ url }: RedisWithSentinel) {
  const quota = quotaOfKeys(createRedisQuota(600, url, false), LIMIT);
  onTestFinished(() => quota.close());
  return quota;
}

type Quota = ReturnType<typeof open>;

/** Returns how many of `count` consecutive requests are admitted. */
async function admitted(quota: Quota, apiKeyId: string, count: number): Promise<number> {
  let admitted = 0;
  for (let request = 0; request < count; request += 1) if ((await quota.consume(apiKeyId)).admitted) admitted += 1;
  return admitted;
}

/** Waits until the replica is in sync with its primary. */
async function replicated({ primary, replica }: RedisWithSentinel): Promise<void> {
  const asOf = Number((await replicationOf(primary)).master_repl_offset);
  await expect.poll(async () => Number((await replicationOf(replica)).slave_repl_offset)).toBeGreaterThanOrEqual(asOf);
}

async function expectRecovered(quota: Quota): Promise<void> {
  await expect.poll(() => quota.fault()).toBeUndefined();
}
