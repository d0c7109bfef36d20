import { once } from 'node:events';
import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { newKeySecret } from '../../../common/rules/key-secret.ts';
import {
  HELD_REFUSAL_MS,
  MAX_UNKNOWN_KEYS,
  UNKNOWN_KEYS_WINDOW_SECONDS,
} from '../../../gateway/admission/authentication.ts';
import { times } from '../../support/builders.ts';
import { aSeparateService, expectProblem, keyLookUps, LEADS, type Service } from '../../support/service.ts';

const METRICS = {
  core: { CORE_METRICS_ADDRESS: '127.0.0.1:0' },
  gateway: { GATEWAY_METRICS_ADDRESS: '127.0.0.1:0' },
};

/** Reads a list from an address of this machine, and returns the status. */
async function statusFrom(localAddress: string, service: Service, secret: string): Promise<number | undefined> {
  const call = request(service.url + LEADS, { localAddress, headers: { authorization: `Bearer ${secret}` } }).end();
  const [response] = await once(call, 'response');
  response.resume();
  return response.statusCode;
}

describe('keys that the core does not know', () => {
  // @proves bounds-25
  test('are looked up a bounded number of times for one address; known keys, and other addresses, are served', async () => {
    const service = await aSeparateService(METRICS);
    const [known, unseen, unseenToo] = [
      await service.aStudioWithKey(),
      await service.aStudioWithKey(),
      await service.aStudioWithKey(),
    ];
    expect((await service.get(known.secret)).status).toBe(200);
    const before = await keyLookUps(service);
    const guess = () => service.get(newKeySecret());

    const statuses = new Map<number, number>();
    let last: Response | undefined;
    for (let sent = 0; sent < 2 * MAX_UNKNOWN_KEYS; sent += 50) {
      for (const response of await Promise.all(times(50, guess))) {
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        if (response.status === 429) last = response;
      }
      if (last) break;
    }

    // On a busy machine more than one window may have passed.
    expect([...statuses.keys()].toSorted()).toEqual([401, 429]);
    expect((statuses.get(401) ?? 0) % MAX_UNKNOWN_KEYS).toBe(0);
    expect((await keyLookUps(service)) - before).toBe(statuses.get(401));
    expect(Number(last?.headers.get('retry-after'))).toBeLessThanOrEqual(UNKNOWN_KEYS_WINDOW_SECONDS);
    await expectProblem(last as Response, 429, 'integration_rate_limited', []);
    expect((await service.get(known.secret)).status).toBe(200);
    expect(await statusFrom('127.0.0.2', service, unseen.secret)).toBe(200);
    expect(await statusFrom('127.0.0.2', service, newKeySecret())).toBe(401);
    expect([200, 429]).toContain((await service.get(unseenToo.secret)).status);
  });

  test('count once for each: a website that goes on with its old key takes nothing from others behind its address', async () => {
    const service = await aSeparateService({ gateway: { QUOTA_LIMIT: '1000000' } });
    const [old, unseen] = [await service.aStudioWithKey(), await service.aStudioWithKey()];
    expect((await service.get(old.secret)).status).toBe(200);
    await service.apiKeys.revokeApiKey(old);
    for (let sent = 0; sent <= MAX_UNKNOWN_KEYS; sent += 50) {
      for (const { status } of await Promise.all(times(50, () => service.get(old.secret)))) expect(status).toBe(401);
    }
    expect((await service.get(unseen.secret)).status).toBe(200);
  });
});

// @proves bounds-141
test('of an address with too many of them, refusals wait; a known key, and another address, do not', async () => {
  const service = await aSeparateService();
  const { secret } = await service.aStudioWithKey();
  const durationOf = async (call: () => Promise<unknown>) => {
    const before = performance.now();
    await call();
    return performance.now() - before;
  };
  const refused = async (key: string, status: number) => {
    const response = await service.get(key);
    await response.text();
    return response.status === status;
  };
  for (const [kind, status] of [
    ['malformed', 401],
    ['unknown', 429],
  ] as const) {
    const key = () => (kind === 'malformed' ? 'guess' : newKeySecret());
    // On a busy machine more than one window may pass, and whatever is asked at the same time takes as long.
    await expect
      .poll(
        async () => {
          await Promise.all(times(MAX_UNKNOWN_KEYS, () => service.get(key()).then((response) => response.text())));
          const [guesses, own, other] = await Promise.all([
            Promise.all(times(3, () => durationOf(() => refused(key(), status)))),
            Promise.all(times(3, () => durationOf(() => refused(secret, 200)))),
            durationOf(() => statusFrom('127.0.0.2', service, key())),
          ]);
          return Math.min(...guesses) - Math.max(...own, other);
        },
        { timeout: 60_000 },
      )
      .toBeGreaterThan(HELD_REFUSAL_MS / 2);
  }
});

describe('behind a balancer', () => {
  /** Reads a list as a balancer passes it on: with the address of its client, behind what that has written itself. */
  const statusOf = async (service: Service, secret: string, client: string) => {
    const forwarded = `203.0.113.${Math.floor(Math.random() * 256)}, ${client}`;
    return (await service.get(secret, '', { 'x-forwarded-for': forwarded })).status;
  };
  const exhaust = async (service: Service, client: string) => {
    for (let sent = 0; sent < 4 * MAX_UNKNOWN_KEYS; sent += 50) {
      const statuses = await Promise.all(times(50, () => statusOf(service, newKeySecret(), client)));
      if (statuses.includes(429)) return;
    }
    throw new Error('no key was refused unseen');
  };

  // @proves bounds-25
  test.each([
    ['198.51.100.7', '198.51.100.8'],
    ['2001:db8::7', '2001:db8:0:1::7'],
  ])('a client that guesses keys takes nothing from others, whatever it claims to be: %s', async (client, other) => {
    const service = await aSeparateService({ gateway: { TRUSTED_PROXIES: '192.0.2.1,127.0.0.0/8' } });
    await exhaust(service, client);
    const { secret } = await service.aStudioWithKey();
    expect([await statusOf(service, newKeySecret(), other), await statusOf(service, secret, other)]).toEqual([
      401, 200,
    ]);
    // What is no address is that of the balancer.
    expect(await statusOf(service, newKeySecret(), 'unknown')).toBe(401);
  });

  test('that is not trusted, all are one client', async () => {
    const service = await aSeparateService({ gateway: { TRUSTED_PROXIES: '192.0.2.1' } });
    const before = performance.now();
    await exhaust(service, '198.51.100.7');
    const status = await statusOf(service, newKeySecret(), '198.51.100.8');
    // On a busy machine the window may have passed.
    if (performance.now() - before < UNKNOWN_KEYS_WINDOW_SECONDS * 1000) expect(status).toBe(429);
  });
});

// @proves bounds-25
test('a refusal by the quota of a key makes the core look up nothing', { tags: ['7.order'] }, async () => {
  const service = await aSeparateService({ ...METRICS, gateway: { ...METRICS.gateway, QUOTA_LIMIT: '1' } });
  const [{ secret }, other] = [await service.aStudioWithKey(), await service.aStudioWithKey()];
  expect((await service.get(secret)).status).toBe(200);
  const before = await keyLookUps(service);

  for (const { status } of await Promise.all(times(100, () => service.get(secret)))) expect(status).toBe(429);

  expect(await keyLookUps(service)).toBe(before);
  expect((await service.get(other.secret)).status).toBe(200);
});
