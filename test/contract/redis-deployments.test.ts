import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { REDIS_TIMEOUT_MS } from '../../common/deadlines.ts';
import { openQuota } from '../../gateway/admission/quota/open-quota.ts';
import { QuotaUnavailable } from '../../gateway/admission/quota/quota-port.ts';
import { createRedisQuota } from '../../gateway/admission/quota/redis-quota.ts';
import { newId } from '../../src/domain/new-id.ts';
import { times } from '../support/builders.ts';
import { type RedisWithSentinel, readReplication, startRedisWithSentinel } from '../support/redis-sentinel.ts';
import { describeWithRedisServer, type RedisServer, startRedisCluster } from '../tools/servers.ts';
import { startProxy } from '../tools/tcp-proxy.ts';
import { inTime, quotaOfKeys } from './quota-of-keys.ts';

/** The maximum recovery time on a busy machine; milliseconds. */
const RECOVERS_WITHIN_MS = 20_000;

function open(url: string, limit: number, isCluster: boolean) {
  const quota = quotaOfKeys(createRedisQuota(600, url, isCluster), limit);
  onTestFinished(() => quota.close());
  return quota;
}

describeWithRedisServer('Redis Cluster quota', () => {
  let nodes: readonly RedisServer[] = [];
  const anyNode = () => nodes[0]?.url ?? '';

  beforeAll(async () => {
    nodes = await startRedisCluster();
  });
  afterAll(async () => {
    for (const node of nodes) await node.stop();
  });

  // @proves quota-9
  test('gateways share one window on a cluster, whichever node their addresses name', async () => {
    const quotas = nodes.map((node) => createRedisQuota(60, node.url, true));
    for (const quota of quotas) {
      onTestFinished(() => quota.close());
      // Waits until it is connected to every node.
      await expect.poll(async () => [await quota.fault(), quota.countedShare()]).toEqual([undefined, 1]);
    }
    const gateways = quotas.map((quota) => quotaOfKeys(quota, 20));
    // Enough keys for every node to have some.
    for (const apiKeyId of times(12, newId)) {
      const decisions = await Promise.all(times(60, (index) => gateways[index % 3]?.consume(apiKeyId)));

      const [admitted] = decisions.filter((decision) => decision?.admitted);
      expect(decisions.filter((decision) => decision?.admitted)).toHaveLength(20);
      // Both windows of the studio are on one node.
      await gateways[0]?.refund(apiKeyId, admitted?.windows ?? []);
    }
  });

  // @proves redis-3
  test('keys of a silent node are refused in time, and admitted again after it is back', async () => {
    const quota = open(anyNode(), 1000, true);
    const ids = times(60, newId);
    await Promise.all(ids.map((id) => quota.consume(id)));

    nodes[2]?.pause();
    const outcomes = await inTime(() => Promise.all(ids.map((id) => quota.consume(id).catch((error) => error))));
    nodes[2]?.resume();

    const refused = outcomes.filter((outcome) => outcome instanceof QuotaUnavailable);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(60);
    const all = () =>
      Promise.all(ids.map((id) => quota.consume(id))).then(
        () => true,
        () => false,
      );
    await expect.poll(all, { timeout: RECOVERS_WITHIN_MS }).toBe(true);
  });

  // @proves quota-9 redis-2
  test('a request whose reply is lost is counted at most once, because no command is retried', async () => {
    const [node] = nodes as [RedisServer];
    const proxy = await startProxy('127.0.0.1', Number(new URL(node.url).port));
    onTestFinished(() => proxy.stop());
    await node.command('CONFIG', 'SET', 'cluster-announce-port', String(proxy.port));
    onTestFinished(async () => void (await node.command('CONFIG', 'SET', 'cluster-announce-port', '0')));
    const quota = open(anyNode(), 100, true);
    const ids = times(30, newId);
    await Promise.all(ids.map((id) => quota.consume(id)));
    // Finds a key whose count is on that node.
    const here = ((await node.command('KEYS', '*')) as string[]).map(
      (name) => /^lead-intake:quota:([^{]+)/.exec(name)?.[1],
    );
    const apiKeyId = ids.find((id) => here.includes(id)) ?? '';
    proxy.loseReplies({ of: (request) => request.includes(apiKeyId) });

    await expect(quota.consume(apiKeyId)).rejects.toBeInstanceOf(QuotaUnavailable);

    expect(proxy.lost()).toBe(1);
    const remaining = () =>
      quota.consume(apiKeyId).then(
        (decision) => decision.remaining,
        () => undefined,
      );
    await expect.poll(remaining, { timeout: RECOVERS_WITHIN_MS }).toBe(97);
  });
});

/** The requests that a key may make in a window. */
const LIMIT = 10;

describeWithRedisServer('Redis quota with sentinels', () => {
  // @proves quota-11
  test('after a failover the replica has the counts, and nothing is admitted in between', async () => {
    const redis = await startRedisWithSentinel();
    onTestFinished(() => redis.stop());
    const [quota, apiKeyId] = [open(redis.url, LIMIT, false), newId()];
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
    const quota = open(redis.url, LIMIT, false);
    expect(await quota.fault()).toBeUndefined();
    await redis.killSentinel();
    expect(await quota.fault()).toBeUndefined();

    const late = open(redis.url, LIMIT, false);
    // The log has this text without the end, which changes with each attempt.
    expect(await late.fault()).toMatch(/All sentinels are unreachable\. Last error/);
    await expect(late.consume(newId())).rejects.toThrow(/All sentinels are unreachable/);
    await redis.restartSentinel();

    await expectRecovered(late);
  });

  test('openQuota waits for its first successful connection, so the first request counts', async () => {
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

type Quota = ReturnType<typeof open>;

/** Returns how many of `count` consecutive requests are admitted. */
async function admitted(quota: Quota, apiKeyId: string, count: number): Promise<number> {
  let admitted = 0;
  for (let request = 0; request < count; request += 1) if ((await quota.consume(apiKeyId)).admitted) admitted += 1;
  return admitted;
}

/** Waits until the replica is in sync with its primary. */
async function replicated({ primary, replica }: RedisWithSentinel): Promise<void> {
  const connectAs = Number((await readReplication(primary)).master_repl_offset);
  await expect
    .poll(async () => Number((await readReplication(replica)).slave_repl_offset))
    .toBeGreaterThanOrEqual(connectAs);
}

async function expectRecovered(quota: Quota): Promise<void> {
  await expect.poll(() => quota.fault()).toBeUndefined();
}
