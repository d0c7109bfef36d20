import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../../../gateway/app.ts';
import { readGatewayConfig } from '../../../gateway/config.ts';
import { StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { DAY_MS, times } from '../../support/builders.ts';
import { describeWithRedis } from '../../support/servers.ts';
import {
  anOwnService,
  aService,
  BOTH_SCOPES,
  CORE_TOKEN,
  expectProblem,
  LEADS,
  PUBLIC_URL,
  type Service,
  type StudioWithKey,
} from '../../support/service.ts';

/** A window so long that no test sees its end. */
const LONG_SECONDS = 3600;
const [KEY_LIMIT, STUDIO_LIMIT] = [5, 12];

const QUOTA = {
  QUOTA_LIMIT: `${KEY_LIMIT}`,
  QUOTA_STUDIO_LIMIT: `${STUDIO_LIMIT}`,
  QUOTA_WINDOW_SECONDS: `${LONG_SECONDS}`,
};

/** More keys of a studio; gives their secrets. */
const moreKeys = ({ apiKeys }: Service, { studioId, memberId }: StudioWithKey, count: number): Promise<string[]> =>
  Promise.all(
    times(count, async (index) => {
      const expireTime = timestampFromMs(Date.now() + DAY_MS);
      const key = { studioId, memberId, name: `Website ${index}`, scopes: [...BOTH_SCOPES], expireTime };
      return (await apiKeys.createApiKey(key)).secret;
    }),
  );

/** What an answer tells of the quota: requests per window, and what is left of them. */
const told = ({ headers }: Response) => [
  Number(/^"default";q=(\d+);w=3600$/.exec(headers.get('ratelimit-policy') ?? '')?.[1]),
  Number(/^"default";r=(\d+);t=\d+$/.exec(headers.get('ratelimit') ?? '')?.[1]),
];

describe('the quota of a studio', () => {
  const service = aService({ gateway: QUOTA });

  test('is shared by its twenty keys, of however many requests at once', { tags: ['8.quota'] }, async () => {
    const studio = await service.aStudioWithKey();
    const secrets = [studio.secret, ...(await moreKeys(service, studio, 19))];
    const other = await service.aStudioWithKey();

    const answers = await Promise.all(times(100, (index) => service.get(secrets[index % 20] as string)));

    expect(answers.filter(({ status }) => status === 200)).toHaveLength(STUDIO_LIMIT);
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      await expectProblem(answer, 429, 'integration_rate_limited', []);
    }
    expect((await service.get(other.secret)).status).toBe(200);
  });

  test('is told as soon as it will be used up before that of the key', { tags: ['8.quota-headers'] }, async () => {
    const studio = await service.aStudioWithKey();
    const [second = '', third = ''] = await moreKeys(service, studio, 2);

    for (const left of [4, 3, 2, 1, 0]) expect(told(await service.get(studio.secret))).toEqual([KEY_LIMIT, left]);
    for (const left of [4, 3, 2]) expect(told(await service.get(second))).toEqual([KEY_LIMIT, left]);
    expect(told(await service.get(third))).toEqual([STUDIO_LIMIT, 3]);
    expect(told(await service.get(studio.secret))).toEqual([KEY_LIMIT, 0]);
    for (const left of [2, 1, 0]) expect(told(await service.get(third))).toEqual([STUDIO_LIMIT, left]);

    const refused = await service.get(second);
    expect(told(refused)).toEqual([STUDIO_LIMIT, 0]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(LONG_SECONDS - 60);
    const { detail } = await expectProblem(refused, 429, 'integration_rate_limited', []);
    expect(detail).toContain("The studio's 12 requests per 3600 s are used up");
  });

  test('gets back a request that turns out not to count, as the key does', { tags: ['8.counted'] }, async () => {
    const studio = await service.aStudioWithKey();
    const others = await moreKeys(service, studio, 2);
    const { studioId: id } = studio;
    await service.get(studio.secret);
    await service.directory.putStudio({ studio: { id, status: StudioStatus.SUSPENDED } });
    // The key is known: it is counted before the core says that its studio is suspended.
    const refused = await service.get(studio.secret);
    await expectProblem(refused, 402, 'subscription_suspended', []);
    await service.directory.putStudio({ studio: { id, status: StudioStatus.ACTIVE } });

    const answers = [];
    for (const secret of [studio.secret, ...others].flatMap((each) => times(KEY_LIMIT, () => each))) {
      answers.push((await service.get(secret)).status);
    }

    expect(answers.filter((status) => status === 200)).toHaveLength(STUDIO_LIMIT - 1);
    expect(answers.slice(0, 5)).toEqual([200, 200, 200, 200, 429]);
  });
});

test('without a limit for studios, each key has its own', { tags: ['8.quota'] }, async () => {
  const { QUOTA_STUDIO_LIMIT: _, ...gateway } = QUOTA;
  const service = await anOwnService({ gateway });
  const studio = await service.aStudioWithKey();
  const secrets = [studio.secret, ...(await moreKeys(service, studio, 3))];

  const answers = await Promise.all(times(40, (index) => service.get(secrets[index % 4] as string)));

  expect(answers.filter(({ status }) => status === 200)).toHaveLength(4 * KEY_LIMIT);
});

/** Much shorter than a gateway takes otherwise to ask for quotas again. */
const SOON = { knownCallerMs: 20 };

describeWithRedis('quotas of their own', (redisUrl) => {
  /** A service with another gateway: asks both, and gives the limits that a key is told. */
  async function twoGateways() {
    const gateway = { ...QUOTA, QUOTA_LIMIT: '1000', QUOTA_STUDIO_LIMIT: '4000', REDIS_URL: redisUrl() };
    const service = await anOwnService({ gateway, deadlines: SOON });
    const common = { CORE_TOKEN, LOG_LEVEL: 'silent', SHUTDOWN_DRAIN_MS: '0', GATEWAY_PORT: '0', PUBLIC_URL };
    const other = await startGateway(readGatewayConfig({ ...common, CORE_URL: service.coreUrl, ...gateway }), SOON);
    onTestFinished(() => other.stop());
    const askBoth = (secret: string) =>
      Promise.all(
        [service.url, other.url].map((url) =>
          fetch(`${url}${LEADS}`, { headers: { authorization: `Bearer ${secret}` } }),
        ),
      );
    const limitsTold = async (secret: string) => (await askBoth(secret)).map((answer) => told(answer)[0]);
    return { service, askBoth, limitsTold };
  }

  test('of a key, above and below the default, hold at every gateway while the key is in use, until taken away', {
    tags: ['8.quota'],
  }, async () => {
    const { service, limitsTold } = await twoGateways();
    const { studioId, apiKeyId, secret } = await service.aStudioWithKey();
    expect(await limitsTold(secret)).toEqual([1000, 1000]);
    for (const [quotaLimit, limit] of [
      [3000, 3000],
      [700, 700],
      [undefined, 1000],
    ] as const) {
      await service.directory.putApiKeyQuota({ studioId, apiKeyId, ...(quotaLimit && { quotaLimit }) });
      await expect.poll(() => limitsTold(secret), { timeout: 10_000 }).toEqual([limit, limit]);
    }
  });

  test('of a studio hold at every gateway for all its keys, until taken away', { tags: ['8.quota'] }, async () => {
    const { service, limitsTold } = await twoGateways();
    const studio = await service.aStudioWithKey();
    const { studioId: id } = studio;
    const [another = ''] = await moreKeys(service, studio, 1);
    expect(await limitsTold(another)).toEqual([1000, 1000]);

    await service.directory.putStudio({ studio: { id, quotaLimit: 600 } });
    for (const secret of [studio.secret, another]) {
      await expect.poll(() => limitsTold(secret), { timeout: 10_000 }).toEqual([600, 600]);
    }

    await service.directory.putStudio({ studio: { id }, updateMask: { paths: ['quota_limit'] } });
    await expect.poll(() => limitsTold(another), { timeout: 10_000 }).toEqual([1000, 1000]);
  });

  test('of a revoked key do not keep it alive: it is refused at once', { tags: ['5.7'] }, async () => {
    const { service, limitsTold } = await twoGateways();
    const { studioId, memberId, apiKeyId, secret } = await service.aStudioWithKey();
    await limitsTold(secret);

    await service.apiKeys.revokeApiKey({ studioId, memberId, apiKeyId });

    await expectProblem(await service.get(secret), 401, 'integration_key_invalid', []);
  });

  test('and windows of a studio are one for all gateways', { tags: ['8.quota'] }, async () => {
    const { service, askBoth } = await twoGateways();
    const studio = await service.aStudioWithKey();
    await service.directory.putStudio({ studio: { id: studio.studioId, quotaLimit: 10 } });
    const secrets = await moreKeys(service, studio, 8);

    const answers = await Promise.all(secrets.map(askBoth));

    expect(answers.flat().filter(({ status }) => status === 200)).toHaveLength(10);
  });
});
