import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { newKeySecret } from '../../../common/rules/key-secret.ts';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { times } from '../../support/builders.ts';
import { aCapture, aSeparateService, aService, expectProblem, keyLookUps } from '../../support/service.ts';

const LIMIT = 5;

/** A window longer than any test; seconds. */
const LONG_SECONDS = 3600;

const service = aService({ gateway: { QUOTA_LIMIT: `${LIMIT}`, QUOTA_WINDOW_SECONDS: `${LONG_SECONDS}` } });

/** Returns the remaining requests of a key from a response's header. */
const left = (response: Response) =>
  Number(/^"default";r=(\d+);t=\d+$/.exec(response.headers.get('ratelimit') ?? '')?.[1]);

const expectLimited = async (response: Response) => {
  const problem = await expectProblem(response, 429, 'integration_rate_limited', []);
  return { problem, retryAfter: Number(response.headers.get('retry-after')) };
};

describe('the quota of a key', () => {
  test('the quota of a key admits exactly its number of concurrent requests', {
    tags: ['7.integration_rate_limited', '8.quota'],
  }, async () => {
    const { secret, studioId } = await service.aStudioWithKey();

    const responses = await Promise.all(times(LIMIT * 4, () => service.post(secret, aCapture())));

    const refused = responses.filter(({ status }) => status === 429);
    expect(responses.filter(({ status }) => status === 201).length).toBe(LIMIT);
    for (const response of refused) await expectLimited(response);
    expect(refused.length).toBe(LIMIT * 3);
    expect(await service.countLeads(studioId)).toBe(LIMIT);
  });

  // @proves bounds-26
  test('the quota of a key counts all three operations, including faulty and replayed requests', {
    tags: ['3.2.renewed', '8.quota', '8.counted', '8.quota-headers'],
  }, async () => {
    const { studioId, memberId, apiKeyId, secret } = await service.aStudioWithKey();
    const [capture, key] = [aCapture(), { 'idempotency-key': randomUUID() }];
    for (const [index, call] of [
      () => service.post(secret, capture, key),
      () => service.post(secret, capture, key),
      () => service.post(secret, '{'),
      () => service.get(secret, '?limit=0'),
      () => service.get(secret, `/${randomUUID()}`),
      () => service.get(secret),
    ].entries()) {
      const response = await call();
      expect(response.headers.get('idempotent-replayed')).toBe(index === 1 ? 'true' : null);
      expect(response.headers.get('ratelimit-policy')).toBe(`"default";q=${LIMIT};w=${LONG_SECONDS}`);
      const [, remaining, reset] = /^"default";r=(\d+);t=(\d+)$/.exec(response.headers.get('ratelimit') ?? '') ?? [];
      expect(Number(remaining)).toBe(Math.max(0, LIMIT - 1 - index));
      expect(Number(reset)).toBeGreaterThanOrEqual(1);
      expect(Number(reset)).toBeLessThanOrEqual(LONG_SECONDS);
    }
    await expectLimited(await service.post(secret, aCapture()));
    await expectLimited(await service.get(secret, `/${randomUUID()}`));
    const replaced = await service.apiKeys.replaceApiKey({ studioId, memberId, apiKeyId });
    await expectLimited(await service.get(replaced.secret));
    expect(await service.countLeads(studioId)).toBe(1);
  });

  // @proves bounds-29
  test('a request refused by an earlier check does not use the quota', {
    tags: ['8.counted'],
  }, async () => {
    const { secret, studioId } = await service.aStudioWithKey({ scopes: [ApiKeyScope.LEADS_READ] });

    for (const _ of times(LIMIT + 1, () => 0)) {
      await expectProblem(await service.post(secret, aCapture()), 403, 'integration_scope_forbidden');
      await expectProblem(await service.get(`${secret}x`), 401, 'integration_key_invalid');
      await expectProblem(await service.get(secret, '/'), 404, 'route_not_found');
    }
    await service.directory.putStudio({ studio: { id: studioId, status: StudioStatus.SUSPENDED } });
    await expectProblem(await service.get(secret), 402, 'subscription_suspended');
    await service.directory.putStudio({ studio: { id: studioId, status: StudioStatus.ACTIVE } });

    expect(left(await service.get(secret))).toBe(LIMIT - 1);
  });
});

describe('a refusal by the quota', () => {
  const brief = aService({ gateway: { QUOTA_LIMIT: '1', QUOTA_WINDOW_SECONDS: '3' } });

  // @proves quota-5 bounds-27
  test("a request in a window's last second waits, and counts in the next window", { tags: ['7.1'] }, async () => {
    const { secret } = await brief.aStudioWithKey();
    // On a slow machine a window may end between two requests.
    let refused = await brief.get(secret);
    while (refused.status === 200) refused = await brief.get(secret);
    const { retryAfter } = await expectLimited(refused);

    await sleep(retryAfter * 1000 - 700);

    const responses = await Promise.all(times(5, () => brief.get(secret)));
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 429, 429, 429, 429]);
  });
});

describe('while requests cannot be counted', () => {
  // Nothing listens on this privileged port.
  const away = { REDIS_URL: 'redis://127.0.0.1:1' };

  test('while requests cannot be counted, every operation gets 503 with a delay and writes nothing', {
    tags: ['4.1.6', '7.integration_rate_unavailable', '7.3', '7.wait'],
  }, async () => {
    const uncounted = await aSeparateService({ gateway: away });
    const { secret, studioId } = await uncounted.aStudioWithKey();
    for (const call of [
      () => uncounted.post(secret, aCapture()),
      () => uncounted.post(secret, '{'),
      () => uncounted.get(secret),
      () => uncounted.get(secret, `/${randomUUID()}`),
    ]) {
      await expectProblem(await call(), 503, 'integration_rate_unavailable', []);
    }
    expect(await uncounted.countLeads(studioId)).toBe(0);
  });

  // @proves bounds-25
  test('while requests cannot be counted, known keys cost the core nothing', {
    tags: ['7.order'],
  }, async () => {
    const uncounted = await aSeparateService({ core: { CORE_METRICS_ADDRESS: '127.0.0.1:0' }, gateway: away });
    const [known, revoked] = [await uncounted.aStudioWithKey(), await uncounted.aStudioWithKey()];
    const areRefused = async () => {
      for (const { secret } of [known, revoked])
        await expectProblem(await uncounted.get(secret), 503, 'integration_rate_unavailable', []);
    };
    await areRefused();
    await uncounted.apiKeys.revokeApiKey(revoked);
    const before = await keyLookUps(uncounted);

    await areRefused();

    expect(await keyLookUps(uncounted)).toBe(before);
    for (const invalid of ['lik_wrong', newKeySecret()])
      await expectProblem(await uncounted.get(invalid), 401, 'integration_key_invalid');
    await expect
      .poll(async () => (await fetch(`${uncounted.url}/readyz`)).json())
      .toMatchObject({ status: 503, detail: 'Not ready: the quota store does not answer.' });
  });
});
