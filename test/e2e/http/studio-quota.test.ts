import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';
import { DAY_MS, times } from '../../support/builders.ts';
import {
  anotherGateway,
  aSeparateService,
  aService,
  BOTH_SCOPES,
  expectProblem,
  LEADS,
  type Service,
  type StudioWithKey,
} from '../../support/service.ts';
import { describeWithRedis } from '../../tools/servers.ts';

/** A window longer than any test; seconds. */
const LONG_SECONDS = 3600;
const [KEY_LIMIT, STUDIO_LIMIT] = [5, 12];

const QUOTA = {
  QUOTA_LIMIT: `${KEY_LIMIT}`,
  QUOTA_STUDIO_LIMIT: `${STUDIO_LIMIT}`,
  QUOTA_WINDOW_SECONDS: `${LONG_SECONDS}`,
};

/** Creates more keys in a studio; returns their secrets. */
const moreKeys = ({ apiKeys }: Service, { studioId, memberId }: StudioWithKey, count: number): Promise<string[]> =>
  Promise.all(
    times(count, async (index) => {
      const expireTime = timestampFromMs(Date.now() + DAY_MS);
      const key = { studioId, memberId, name: `Website ${index}`, scopes: [...BOTH_SCOPES], expireTime };
      return (await apiKeys.createApiKey(key)).secret;
    }),
  );

/** Returns the limit and the remaining requests in the headers of a response. */
const quotaIn = ({ headers }: Response) => [
  Number(/^"default";q=(\d+);w=3600$/.exec(headers.get('ratelimit-policy') ?? '')?.[1]),
  Number(/^"default";r=(\d+);t=\d+$/.exec(headers.get('ratelimit') ?? '')?.[1]),
];

// @proves quota-2
describe('the quota of a studio', () => {
  const service = aService({ gateway: QUOTA });

  test('the headers show whichever quota will run out first', { tags: ['8.quota-headers'] }, async () => {
    const studio = await service.aStudioWithKey();
    const [second = '', third = ''] = await moreKeys(service, studio, 2);

    for (const [secret, quota] of [
      ...[4, 3, 2, 1, 0].map((left) => [studio.secret, [KEY_LIMIT, left]] as const),
      ...[4, 3, 2].map((left) => [second, [KEY_LIMIT, left]] as const),
      [third, [STUDIO_LIMIT, 3]],
      [studio.secret, [KEY_LIMIT, 0]],
      ...[2, 1, 0].map((left) => [third, [STUDIO_LIMIT, left]] as const),
    ] as const)
      expect(quotaIn(await service.get(secret))).toEqual(quota);

    const refused = await service.get(second);
    expect(quotaIn(refused)).toEqual([STUDIO_LIMIT, 0]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(LONG_SECONDS - 60);
    const { detail } = await expectProblem(refused, 429, 'integration_rate_limited', []);
    expect(detail).toContain("The studio's 12 requests per 3600 s are used up");
  });
});

/** Much shorter than the default interval between reads of a key's quotas. */
const SOON = { keyCacheMs: 20 };

// @proves quota-3
describeWithRedis('custom quotas', (redisUrl) => {
  test("a key's custom quota applies at every gateway until it is removed", {
    tags: ['8.quota'],
  }, async () => {
    const gateway = { ...QUOTA, QUOTA_LIMIT: '1000', QUOTA_STUDIO_LIMIT: '4000', REDIS_URL: redisUrl() };
    const service = await aSeparateService({ gateway, deadlines: SOON });
    const urls = [service.url, await anotherGateway(service, { gateway, deadlines: SOON })];
    const { studioId, apiKeyId, secret } = await service.aStudioWithKey();
    const headers = { authorization: `Bearer ${secret}` };
    const limits = async () =>
      (await Promise.all(urls.map((url) => fetch(url + LEADS, { headers })))).map((answer) => quotaIn(answer)[0]);
    expect(await limits()).toEqual([1000, 1000]);
    for (const [quotaLimit, limit] of [
      [3000, 3000],
      [700, 700],
      [undefined, 1000],
    ] as const) {
      await service.directory.putApiKeyQuota({ studioId, apiKeyId, ...(quotaLimit && { quotaLimit }) });
      await expect.poll(limits).toEqual([limit, limit]);
    }
  });
});
