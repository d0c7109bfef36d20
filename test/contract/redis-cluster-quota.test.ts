import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { QuotaUnavailable } from '../../gateway/admission/quota/quota-port.ts';
import { createRedisQuota } from '../../gateway/admission/quota/redis-quota.ts';
import { newId } from '../../src/domain/new-id.ts';
import { times } from '../support/builders.ts';
import { describeWithRedisServer, type RedisServer, startRedisCluster } from '../tools/servers.ts';
import { startProxy } from '../tools/tcp-proxy.ts';
import { quotaOfKeys } from './quota-of-keys.ts';
import { inTime } from './quota-times.ts';

/** How long recovery may take on a busy machine; milliseconds. */
const RECOVERS_WITHIN_MS = 20_000;

const open = (redisUrl: string, limit: number) => quotaOfKeys(createRedisQuota(60, redisUrl, true), limit);

describeWithRedisServer('Redis Cluster quota', () => {
  let nodes: readonly RedisServer[] = [];
  const anyNode = () => nodes[0]?.url ?? '';

  beforeAll(async () => {
    nodes = await startRedisCluster();
  });
  afterAll(async () => {
    for (const node of nodes) await node.stop();
  });

  // @proves quota-10
  test('gateways share one window, whichever node the address of each names', async () => {
    const quotas = nodes.map((node) => createRedisQuota(60, node.url, true));
    for (const quota of quotas) {
      onTestFinished(() => quota.close());
      // It is connected to every node.
      await expect.poll(async () => [await quota.fault(), quota.countedShare()]).toEqual([undefined, 1]);
    }
    const gateways = quotas.map((quota) => quotaOfKeys(quota, 20));
    // Keys on every node.
    for (const apiKeyId of times(12, newId)) {
      const decisions = await Promise.all(times(60, (index) => gateways[index % 3]?.consume(apiKeyId)));

      const [admitted] = decisions.filter((decision) => decision?.admitted);
      expect(decisions.filter((decision) => decision?.admitted)).toHaveLength(20);
      // Both windows of the studio are on one node.
      await gateways[0]?.refund(apiKeyId, admitted?.windows ?? []);
    }
  });

  // @proves redis-3
  test('keys of a silent node are refused in time, and admitted when it is back', async () => {
    const quota = open(anyNode(), 1000);
    onTestFinished(() => quota.close());
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

  // @proves quota-7 redis-2
  test('a request whose reply is lost is counted at most once: no command is sent again', async () => {
    const [node] = nodes as [RedisServer];
    const proxy = await startProxy('127.0.0.1', Number(new URL(node.url).port));
    onTestFinished(() => proxy.stop());
    await node.command('CONFIG', 'SET', 'cluster-announce-port', String(proxy.port));
    onTestFinished(async () => void (await node.command('CONFIG', 'SET', 'cluster-announce-port', '0')));
    const quota = open(anyNode(), 100);
    onTestFinished(() => quota.close());
    const ids = times(30, newId);
    await Promise.all(ids.map((id) => quota.consume(id)));
    // A key whose count is on that node.
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
