import { afterAll, beforeAll, expect, test } from 'vitest';
import { newKeySecret } from '../../../common/rules/key-secret.ts';
import { describeWithRedisServer, type RedisServer, startRedis } from '../../support/servers.ts';
import { aCapture, aService, expectProblem, keyLookUps, leadOf } from '../../support/service.ts';

describeWithRedisServer('a gateway that counts in Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.stop());
  const service = aService(() => ({
    core: { CORE_METRICS_ADDRESS: '127.0.0.1:0' },
    gateway: { REDIS_URL: redis.url },
  }));

  /** Far more than the gateway needs to respond; the rest allows for a slow machine. Milliseconds. */
  const QUICKLY_MS = 1000;

  const failures: [name: string, away: () => Promise<void>, back: () => Promise<void>][] = [
    ['killed', () => redis.kill(), () => redis.restart()],
    ['paused', async () => redis.pause(), async () => redis.resume()],
  ];
  // @proves quota-12 bounds-25
  test.each(failures)(
    'refuses every request while Redis is %s, and serves again without a restart',
    { tags: ['4.1.6', '7.3', '7.order'] },
    async (_, away, back) => {
      const { studioId, secret } = await service.aStudioWithKey();
      await leadOf(await service.post(secret, aCapture()), 201);
      const revoked = await service.aStudioWithKey();
      expect((await service.get(revoked.secret)).status).toBe(200);
      await service.apiKeys.revokeApiKey(revoked);
      const capture = aCapture();
      const key = { 'idempotency-key': crypto.randomUUID() };

      await away();
      const sentAt = performance.now();
      const refused = await service.post(secret, capture, key);
      expect(performance.now() - sentAt).toBeLessThan(QUICKLY_MS);
      await expectProblem(refused, 503, 'integration_rate_unavailable');
      // A key that is known costs the core nothing, also one that is revoked meanwhile.
      const before = await keyLookUps(service);
      for (const known of [secret, revoked.secret]) {
        await expectProblem(await service.get(known), 503, 'integration_rate_unavailable');
      }
      expect(await keyLookUps(service)).toBe(before);
      // Authentication does not depend on the quota.
      await expectProblem(await service.get('lik_wrong'), 401, 'integration_key_invalid');
      await expectProblem(await service.get(newKeySecret()), 401, 'integration_key_invalid');
      expect(await service.countLeads(studioId)).toBe(1);
      await expect
        .poll(async () => (await fetch(`${service.url}/readyz`)).json(), { timeout: 5000 })
        .toMatchObject({ status: 503, detail: 'Not ready: the quota store does not answer.' });

      await back();
      await expect.poll(async () => (await fetch(`${service.url}/readyz`)).status, { timeout: 5000 }).toBe(200);
      await leadOf(await service.post(secret, capture, key), 201);
      expect(await service.countLeads(studioId)).toBe(2);
    },
  );
});
