import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import type { Redis } from 'ioredis';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Quota, QuotaUnavailable } from '../../gateway/admission/quota/quota-port.ts';
import { singleClient } from '../../gateway/admission/quota/redis-client.ts';
import { createRedisQuota } from '../../gateway/admission/quota/redis-quota.ts';
import { newId } from '../../src/domain/new-id.ts';
import { times } from '../support/builders.ts';
import { ROOT } from '../tools/processes.ts';
import { describeWithRedis, describeWithRedisServer, type RedisServer, startRedis } from '../tools/servers.ts';
import { startProxy } from '../tools/tcp-proxy.ts';
import { processWithClosedQuota, quotaContract } from './quota-contract.ts';
import { inTime, passInRedis, type QuotaOfKeys, quotaOfKeys } from './quota-of-keys.ts';

/** How long a recovery may take on a busy machine; an idle one needs less than a second; milliseconds. */
const RECOVERS_WITHIN_MS = 20_000;

const POLICY = { limit: 100, windowSeconds: 60 };

function openQuota(redisUrl: string, windowSeconds = POLICY.windowSeconds): Quota {
  const quota = createRedisQuota(windowSeconds, redisUrl, false);
  onTestFinished(() => quota.close());
  return quota;
}

const open = (redisUrl: string, { limit, windowSeconds } = POLICY): QuotaOfKeys =>
  quotaOfKeys(openQuota(redisUrl, windowSeconds), limit);

describeWithRedis('Redis quota', (redisUrl) => {
  let redis: Redis;
  beforeAll(async () => {
    redis = singleClient(redisUrl());
    await redis.connect();
    return () => redis.disconnect();
  });

  quotaContract('Redis', {
    open: async (windowSeconds) => createRedisQuota(windowSeconds, redisUrl(), false),
    gateways: 2,
    pass: (bearer, ms) => passInRedis(redis, bearer, ms),
    redisUrl,
  });

  // @proves quota-9
  test('gateways on one Redis share one window', { tags: ['8.quota', '8.counted'] }, async () => {
    const gateways = times(3, () => open(redisUrl(), { limit: 20, windowSeconds: 60 }));
    const apiKeyId = newId();

    const decisions = await Promise.all(times(60, (index) => gateways[index % 3]?.consume(apiKeyId)));

    expect(decisions.filter((decision) => decision?.admitted)).toHaveLength(20);
  });
});

/** A way in which Redis can fail. */
interface Outage {
  readonly name: string;
  begin(server: RedisServer): unknown;
  end(server: RedisServer): unknown;
}

const OUTAGES: readonly Outage[] = [
  { name: 'silent', begin: (server) => server.pause(), end: (server) => server.resume() },
  {
    name: 'one that refuses the password',
    async begin(server) {
      const { username } = new URL(server.url);
      await server.command('ACL', 'SETUSER', username, 'resetpass', '>another');
      await server.command('CLIENT', 'KILL', 'USER', username);
    },
    end(server) {
      const { username, password } = new URL(server.url);
      return server.command('ACL', 'SETUSER', username, `>${password}`);
    },
  },
];

describeWithRedisServer('Redis quota on a dedicated server', () => {
  let server: RedisServer;

  beforeEach(async () => {
    server = await startRedis();
    return () => server.stop();
  });

  describe.each(OUTAGES)('while Redis is $name', ({ begin, end }) => {
    // @proves redis-1 redis-7
    test('a quota that starts during an outage admits nothing, in time, and recovers afterwards', async () => {
      await begin(server);
      const quota = open(server.url);
      await expectUnavailable(quota);
      const error = await decide(quota);
      expect(inspect(error, { depth: null, showHidden: true })).not.toContain(new URL(server.url).password);

      await end(server);
      await expectRecovered(quota);
    });

    test('an outage refuses requests in time, then immediately, so that they hold no memory', async () => {
      const quota = open(server.url);
      expect(await quota.consume(newId())).toMatchObject({ admitted: true });
      const warned = vi.fn();
      process.on('warning', warned);
      onTestFinished(() => void process.off('warning', warned));

      await begin(server);
      const outcomes = await Promise.all(times(100, () => decide(quota)));
      expect(new Set(outcomes.map((outcome) => outcome?.constructor))).toEqual(new Set([QuotaUnavailable]));
      await expectUnavailable(quota);
      await sleep(700);

      const start = performance.now();
      for (let request = 0; request < 20; request += 1) {
        expect(await decide(quota)).toBeInstanceOf(QuotaUnavailable);
      }
      // Less than half the time that waiting for each request would take.
      expect(performance.now() - start).toBeLessThan(2000);
      expect(warned).not.toHaveBeenCalled();
      await end(server);
      await expectRecovered(quota);
    });
  });

  // @proves redis-4
  test('a closed quota of a silent Redis does not keep its process alive', async () => {
    server.pause();

    expect(await processWithClosedQuota(server.url, false)).toBe('QuotaUnavailable, closed');
  });

  test('a connection to a server that became a replica is closed immediately', async () => {
    const connection = async () =>
      /id=(\d+) .* user=gateway /.exec(String(await server.command('CLIENT', 'LIST')))?.[1];
    const quota = open(server.url);
    expect(await quota.fault()).toBeUndefined();
    const before = await connection();
    await server.command('REPLICAOF', '127.0.0.1', '1');

    await decide(quota);

    await expect.poll(connection).not.toBeOneOf([before, undefined]);
  });

  // @proves quota-2
  test("a studio with a limit has an entry beside the key's, and another while it is refused", async () => {
    const quota = openQuota(server.url);
    const bearer = { apiKeyId: newId(), studioId: 'studio-1' };
    const names = async () => ((await server.command('KEYS', '*')) as string[]).toSorted();
    const counters = [`lead-intake:quota:${bearer.apiKeyId}`, 'lead-intake:quota:studio:studio-1'];

    await quota.consume(bearer, { key: 5, studio: 1 });
    expect(await names()).toEqual(counters);
    await quota.consume(bearer, { key: 5, studio: 1 });
    expect(await names()).toEqual([...counters, 'lead-intake:quota:refusal:studio:studio-1'].toSorted());
  });

  // @proves redis-8
  test('when Redis loses its data and scripts, new windows start and no request fails', async () => {
    const quota = open(server.url, { limit: 1, windowSeconds: 60 });
    const apiKeyId = newId();
    expect(await quota.consume(apiKeyId)).toMatchObject({ admitted: true });
    expect(await quota.consume(apiKeyId)).toMatchObject({ admitted: false });

    await server.flush();

    expect(await quota.consume(apiKeyId)).toMatchObject({ admitted: true });
    expect(await quota.consume(apiKeyId)).toMatchObject({ admitted: false });
  });

  test('the Redis permissions in docs/how-to/databases.md are enough', async () => {
    const guide = readFileSync(join(ROOT, 'docs/how-to/databases.md'), 'utf8');
    const [, commands = '', names = ''] = /`((?:\+\w+ ?)+)` on\s+`(~[^`]+)`/.exec(guide) ?? [];
    await server.command('ACL', 'SETUSER', 'narrow', 'on', '>narrow', names, ...commands.split(' '));
    const quota = open(server.url.replace(/\/\/[^@]+@/, '//narrow:narrow@'), { limit: 1, windowSeconds: 60 });
    const apiKeyId = newId();

    const { windows } = await quota.consume(apiKeyId);
    await quota.refund(apiKeyId, windows);
    expect(await quota.consume(apiKeyId)).toMatchObject({ admitted: true });
    expect(await quota.consume(apiKeyId)).toMatchObject({ admitted: false });
    expect(await quota.fault()).toBeUndefined();
  });

  // @proves redis-10
  test('a user who may not select the database of the address counts in no other database', async () => {
    await server.command('ACL', 'SETUSER', 'fixed', 'on', '>fixed', 'allkeys', '+@all', '-select');
    const quota = open(`${server.url.replace(/\/\/[^@]+@/, '//fixed:fixed@')}/1`);
    const apiKeyId = newId();
    for (let request = 0; request < 50; request += 1) {
      await expect(quota.consume(apiKeyId)).rejects.toThrow(/Redis cannot count requests: .*select/);
      await sleep(5);
    }
    expect(await quota.fault()).toMatch(/select/);
    expect(await server.command('KEYS', '*')).toEqual([]);

    await server.command('ACL', 'SETUSER', 'fixed', '+select');
    await expect.poll(() => quota.fault(), { timeout: RECOVERS_WITHIN_MS }).toBeUndefined();
    expect(await quota.consume(apiKeyId)).toMatchObject({ admitted: true });
    expect(await server.command('KEYS', '*')).toEqual([]);
  });

  test('a window that started under a longer policy ends within the new length', async () => {
    const apiKeyId = newId();
    await open(server.url, { limit: 1, windowSeconds: 3600 }).consume(apiKeyId);
    const quota = open(server.url, { limit: 1, windowSeconds: 1 });

    const { admitted, resetSeconds } = await quota.consume(apiKeyId);
    expect({ admitted, resetSeconds }).toEqual({ admitted: false, resetSeconds: 1 });
    await sleep(1005);

    expect(await quota.consume(apiKeyId)).toMatchObject({ admitted: true, remaining: 0, resetSeconds: 1 });
  });

  // @proves quota-5
  test.each([
    ['a higher limit', { limit: 5, windowSeconds: 60 }, Math.ceil],
    // The rest of another window's refusal is rounded down, since it is not extended.
    ['a shorter window', { limit: 1, windowSeconds: 1 }, Math.floor],
  ])('a refused key stays refused until the announced time, even by a gateway with %s', async (_, policy, rounded) => {
    const apiKeyId = newId();
    const before = open(server.url, { limit: 1, windowSeconds: 60 });
    const start = performance.now();
    await before.consume(apiKeyId);
    await before.consume(apiKeyId);
    const refused = performance.now();
    const after = open(server.url, policy);

    for (const waitMs of [0, 1005]) {
      await sleep(waitMs);
      const asked = performance.now();
      const { admitted, resetSeconds } = await after.consume(apiKeyId);
      expect(admitted).toBe(false);
      // A millisecond of tolerance, because Redis and the test read different clocks.
      expect(resetSeconds).toBeGreaterThanOrEqual(rounded(60 - (performance.now() - start + 1) / 1000));
      expect(resetSeconds).toBeLessThanOrEqual(rounded(60 - (asked - refused - 1) / 1000));
    }
  });

  /** Commands that leave an unexpected value under a counter's name. */
  const UNEXPECTED: readonly [name: string, ...command: [string, ...string[]]][] = [
    ['a hash', 'HSET', 'NAME', 'count', '1'],
    ['a text', 'SET', 'NAME', 'many'],
    ['a fraction', 'SET', 'NAME', '1.5'],
    ['a negative number', 'SET', 'NAME', '-1000'],
    ['the largest number of Redis', 'SET', 'NAME', '9223372036854775807'],
    ['a number that is invalid in Redis', 'SET', 'NAME', '1e300'],
  ];
  const LIMIT_OF_TWO = { limit: 2, windowSeconds: 60 };

  // @proves quota-9
  describe.each([
    ['that expires', true],
    ['that does not expire', false],
  ])('a value %s', (_, expires) => {
    async function leave(name: string, [command, ...args]: readonly [string, ...string[]]): Promise<void> {
      await server.command(command, ...args.map((arg) => (arg === 'NAME' ? name : arg)));
      if (expires) await server.command('PEXPIRE', name, '30000');
    }

    test('an unexpected value of a counter, refund or readiness entry is ignored and replaced', async () => {
      const quota = open(server.url, LIMIT_OF_TWO);
      for (const [value, ...command] of UNEXPECTED) {
        const [apiKeyId, refunded] = [newId(), newId()];
        const name = `lead-intake:quota:${apiKeyId}`;
        await leave(name, command);
        const outcomes = [];
        for (const _ of times(3, Number)) outcomes.push(await quota.consume(apiKeyId));
        expect(outcomes, value).toMatchObject([
          { admitted: true, remaining: 1 },
          { admitted: true, remaining: 0 },
          { admitted: false, remaining: 0 },
        ]);
        expect(await server.command('PTTL', name), value).toBeGreaterThan(30_000);

        const { windows } = await quota.consume(refunded);
        for (const each of [`lead-intake:quota:${refunded}`, 'lead-intake:quota:ready']) {
          await server.command('DEL', each);
          await leave(each, command);
        }
        await quota.refund(refunded, windows);
        expect(await quota.consume(refunded), value).toMatchObject({ admitted: true, remaining: 1 });
        expect(await quota.fault(), value).toBeUndefined();
      }
    });
  });

  // @proves quota-5
  test.each([
    ['does not expire', ['2000 1']],
    ['lasts for a year', [`${365 * 86_400_000} 1`, 'PX', String(365 * 86_400_000)]],
    ['has no limit', ['2000', 'PX', '2000']],
    ['has no text', ['', 'PX', '2000']],
  ])('a refusal that %s is ignored', async (_, words) => {
    const [apiKeyId, quota] = [newId(), open(server.url, LIMIT_OF_TWO)];
    await server.command('SET', `lead-intake:quota:refusal:${apiKeyId}`, ...words);

    expect(await quota.consume(apiKeyId)).toMatchObject({ admitted: true });
  });

  test('deployments with different prefixes share a database but no counter', async () => {
    const opened = (prefix?: string) => {
      const quota = createRedisQuota(60, server.url, false, prefix);
      onTestFinished(() => quota.close());
      return quotaOfKeys(quota, 1);
    };
    const apiKeyId = newId();
    for (const quota of [opened(), opened('staging:'), opened('test:')]) {
      expect(await quota.consume(apiKeyId)).toMatchObject({ admitted: true });
      expect(await quota.consume(apiKeyId)).toMatchObject({ admitted: false });
    }

    expect(await opened('staging:').consume(apiKeyId)).toMatchObject({ admitted: false });
    expect(((await server.command('KEYS', 'staging:*')) as string[]).toSorted()).toEqual([
      `staging:lead-intake:quota:${apiKeyId}`,
      `staging:lead-intake:quota:refusal:${apiKeyId}`,
    ]);
  });

  // @proves quota-9
  test('a request whose reply is lost is counted at most once, because no command is retried', async () => {
    const proxy = await startProxy('127.0.0.1', Number(new URL(server.url).port));
    onTestFinished(() => proxy.stop());
    const quota = open(server.url.replace(/:\d+$/, `:${proxy.port}`));
    const apiKeyId = newId();
    // The first call loads the scripts into Redis.
    await quota.consume(apiKeyId);
    proxy.loseReplies({ of: (request) => request.includes(apiKeyId) });

    await expect(quota.consume(apiKeyId)).rejects.toBeInstanceOf(QuotaUnavailable);

    expect(proxy.lost()).toBe(1);
    await expect.poll(() => quota.fault(), { timeout: RECOVERS_WITHIN_MS }).toBeUndefined();
    expect(await quota.consume(apiKeyId)).toMatchObject({ remaining: POLICY.limit - 3 });
  });

  async function expectUnavailable(quota: QuotaOfKeys): Promise<void> {
    expect(await inTime(() => decide(quota))).toBeInstanceOf(QuotaUnavailable);
    expect(await inTime(() => quota.fault())).toEqual(expect.any(String));
  }

  async function expectRecovered(quota: QuotaOfKeys): Promise<void> {
    await expect.poll(() => quota.fault(), { timeout: RECOVERS_WITHIN_MS, interval: 20 }).toBeUndefined();
    expect(await quota.consume(newId())).toMatchObject({ admitted: true, remaining: POLICY.limit - 1 });
  }
});

/** Returns the decision on one request, or the error. */
function decide(quota: QuotaOfKeys): Promise<unknown> {
  return quota.consume(newId()).catch((error: unknown) => error);
}
