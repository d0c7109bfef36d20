import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { newKeySecret } from '../../../common/rules/key-secret.ts';
import {
  HELD_REFUSAL_MS,
  MAX_UNKNOWN_KEYS,
  UNKNOWN_KEYS_WINDOW_SECONDS,
} from '../../../gateway/admission/authentication.ts';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { aGateway } from '../../integration/a-gateway.ts';
import { times } from '../../support/builders.ts';
import { scrape } from '../../support/metrics.ts';
import { lines } from '../../support/raw-http.ts';
import { aSeparateService, CORE_TOKEN, expectProblem, keyLookUps, LEADS, type Service } from '../../support/service.ts';
import { startProxy } from '../../tools/tcp-proxy.ts';

const METRICS = {
  core: { CORE_METRICS_ADDRESS: '127.0.0.1:0' },
  gateway: { GATEWAY_METRICS_ADDRESS: '127.0.0.1:0' },
};

/** Reads a list from one of this machine's addresses. Returns the status. */
async function statusFrom(
  localAddress: string,
  service: Pick<Service, 'url'>,
  secret: string,
): Promise<number | undefined> {
  const call = request(service.url + LEADS, { localAddress, headers: { authorization: `Bearer ${secret}` } }).end();
  const [response] = await once(call, 'response');
  response.resume();
  return response.statusCode;
}

/** Keys whose requests count against no quota, each with the status of a list. */
const UNCOUNTED: readonly [string, number, (service: Service) => Promise<string>][] = [
  [
    'is revoked',
    401,
    async (service) => {
      const key = await service.aStudioWithKey();
      await service.apiKeys.revokeApiKey(key);
      return key.secret;
    },
  ],
  [
    'may not read',
    403,
    async (service) => (await service.aStudioWithKey({ scopes: [ApiKeyScope.LEADS_CREATE] })).secret,
  ],
];

/** More requests than may wait for the core before a gateway sheds load. */
const FLOOD = 1100;

/** Opens many connections from an address. The returned function reads a list on each and returns the statuses. */
async function connectionsFrom(localAddress: string, gateway: Pick<Service, 'url'>, count: number) {
  const { hostname, port } = new URL(gateway.url);
  const sockets: Socket[] = [];
  // A port accepts only so many connections at a time.
  while (sockets.length < count) {
    const more = times(100, () => connect({ host: hostname, port: Number(port), localAddress }));
    await Promise.all(more.map((socket) => once(socket, 'connect')));
    sockets.push(...more);
  }
  return (makeSecret: () => string) =>
    sockets.map(async (socket) => {
      socket.write(lines(`GET ${LEADS} HTTP/1.1`, 'Host: leads', `Authorization: Bearer ${makeSecret()}`, ''));
      const [answer] = await once(socket, 'data');
      socket.destroy();
      return Number(/^HTTP\/1\.1 (\d+)/.exec(String(answer))?.[1]);
    });
}

/** Starts a gateway with metrics whose core can be silenced. */
async function aGatewayBehindProxy({ coreUrl }: Service) {
  const { hostname, port } = new URL(coreUrl);
  const proxy = await startProxy(hostname, Number(port));
  onTestFinished(() => proxy.stop());
  const settings = { ...METRICS.gateway, CORE_TOKEN };
  const gateway = await aGateway(`http://127.0.0.1:${proxy.port}`, settings);
  const underWay = async () => (await scrape(gateway.metricsUrl)).get('lead_intake_gateway_requests_under_way');
  return { url: gateway.url, proxy, underWay };
}

type SilencedGateway = Awaited<ReturnType<typeof aGatewayBehindProxy>>;

/**
 * Sends groups of requests to a gateway, one group after the other, while its core is silent. Returns their statuses. On a
 * busy machine the first may time out before the last arrive. Then all of them are repeated at another gateway.
 */
async function askWhileSilent(
  service: Service,
  prepare: (gateway: SilencedGateway) => Promise<readonly (() => Promise<number | undefined>[])[]>,
  triesLeft = 20,
): Promise<{ readonly gateway: SilencedGateway; readonly statuses: readonly (number | undefined)[][] }> {
  const gateway = await aGatewayBehindProxy(service);
  const groups = await prepare(gateway);
  gateway.proxy.silence();
  const answers: Promise<number | undefined>[][] = [];
  let isAnswered = false;
  for (const ask of groups) {
    answers.push(ask());
    const all = answers.flat();
    for (const answer of all) answer.then(() => (isAnswered = true));
    await expect.poll(async () => isAnswered || (await gateway.underWay()) === all.length).toBe(true);
  }
  gateway.proxy.heal();
  const statuses = await Promise.all(answers.map((group) => Promise.all(group)));
  const isLate = statuses.flat().includes(503);
  return isLate && triesLeft > 0 ? askWhileSilent(service, prepare, triesLeft - 1) : { gateway, statuses };
}

describe('unknown keys', () => {
  // @proves bounds-25
  test('look-ups of unknown keys are limited by address; known keys and other addresses are served', async () => {
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
    // On a busy machine several windows may pass before one is full.
    for (let sent = 0; sent < 50 * MAX_UNKNOWN_KEYS; sent += 50) {
      for (const response of await Promise.all(times(50, guess))) {
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        if (response.status === 429) last = response;
      }
      if (last) break;
    }

    expect([...statuses.keys()].toSorted()).toEqual([401, 429]);
    expect(statuses.get(401)).toBeGreaterThanOrEqual(MAX_UNKNOWN_KEYS);
    expect((await keyLookUps(service)) - before).toBe(statuses.get(401));
    expect(Number(last?.headers.get('retry-after'))).toBeLessThanOrEqual(UNKNOWN_KEYS_WINDOW_SECONDS);
    await expectProblem(last as Response, 429, 'integration_rate_limited', []);
    expect((await service.get(known.secret)).status).toBe(200);
    expect(await statusFrom('127.0.0.2', service, unseen.secret)).toBe(200);
    expect(await statusFrom('127.0.0.2', service, newKeySecret())).toBe(401);
    expect([200, 429]).toContain((await service.get(unseenToo.secret)).status);
  });

  test('a website that keeps using its old key does not block others behind its address', async () => {
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

// @proves bounds-191
test.each(UNCOUNTED)(
  'a key that %s costs few look-ups on many connections and blocks no other request',
  async (_, status, aKey) => {
    const service = await aSeparateService(METRICS);
    const [{ secret: known }, repeated] = [await service.aStudioWithKey(), await aKey(service)];
    let before = 0;
    const { statuses } = await askWhileSilent(service, async (gateway) => {
      expect(await statusFrom('127.0.0.1', gateway, known)).toBe(200);
      expect(await statusFrom('127.0.0.2', gateway, repeated)).toBe(status);
      before = await keyLookUps(service);
      const read = await connectionsFrom('127.0.0.2', gateway, FLOOD);
      return [() => read(() => repeated), () => [statusFrom('127.0.0.1', gateway, known)]];
    });

    const [flood, other] = statuses;
    expect(other).toEqual([200]);
    expect(new Set(flood)).toEqual(new Set([status]));
    expect((await keyLookUps(service)) - before).toBeLessThan(10);
  },
);

// @proves bounds-17
test('look-ups that wait for the core do not delay requests with known keys', async () => {
  const service = await aSeparateService();
  const { secret } = await service.aStudioWithKey();
  const { statuses } = await askWhileSilent(service, async (gateway) => {
    expect(await statusFrom('127.0.0.1', gateway, secret)).toBe(200);
    const guess = [
      await connectionsFrom('127.0.0.2', gateway, MAX_UNKNOWN_KEYS),
      await connectionsFrom('127.0.0.3', gateway, MAX_UNKNOWN_KEYS),
    ];
    const read = await connectionsFrom('127.0.0.1', gateway, 100);
    return [() => guess.flatMap((readFrom) => readFrom(newKeySecret)), () => read(() => secret)];
  });

  const [guesses, known] = statuses;
  expect(new Set(known)).toEqual(new Set([200]));
  expect(new Set(guesses)).toEqual(new Set([401]));
});

// @proves bounds-141
test.each<[string, number, (service: Service) => Promise<() => string>]>([
  ['is malformed', 401, async () => () => 'guess'],
  ['is unknown', 429, async () => newKeySecret],
  ...UNCOUNTED.map(([kind, status, aKey]) => {
    const repeated = async (service: Service) => {
      const secret = await aKey(service);
      return () => secret;
    };
    return [kind, status, repeated] as const satisfies [string, number, unknown];
  }),
])('refusals are delayed only for an address that has too many, when the key %s', async (_, status, keys) => {
  const service = await aSeparateService();
  const [{ secret }, key] = [await service.aStudioWithKey(), await keys(service)];
  const measureDuration = async (call: () => Promise<unknown>) => {
    const before = performance.now();
    await call();
    return performance.now() - before;
  };
  const read = async (secret: string) => {
    const response = await service.get(secret);
    await response.text();
    return response.status;
  };
  expect(await read(secret)).toBe(200);
  // On a busy machine several windows may pass, and concurrent requests are equally slow.
  await expect
    .poll(
      async () => {
        await Promise.all(times(MAX_UNKNOWN_KEYS, () => read(key())));
        const statuses: number[] = [];
        const [guesses, own, other] = await Promise.all([
          Promise.all(times(3, () => measureDuration(async () => statuses.push(await read(key()))))),
          Promise.all(times(3, () => measureDuration(() => read(secret)))),
          measureDuration(() => statusFrom('127.0.0.2', service, key())),
        ]);
        if (statuses.some((got) => got !== status)) return 0;
        return Math.min(...guesses) - Math.max(...own, other);
      },
      { timeout: 60_000 },
    )
    .toBeGreaterThan(HELD_REFUSAL_MS / 2);
});

describe('behind a balancer', () => {
  /** Reads a list as a balancer forwards it, with its client's address after any that the client wrote. */
  const readStatus = async (service: Service, secret: string, client: string) => {
    const forwarded = `203.0.113.${Math.floor(Math.random() * 256)}, ${client}`;
    return (await service.get(secret, '', { 'x-forwarded-for': forwarded })).status;
  };
  const exhaust = async (service: Service, client: string) => {
    for (let sent = 0; sent < 50 * MAX_UNKNOWN_KEYS; sent += 50) {
      const statuses = await Promise.all(times(50, () => readStatus(service, newKeySecret(), client)));
      if (statuses.includes(429)) return;
    }
    throw new Error('each key was looked up');
  };

  // @proves bounds-25
  test.each([
    ['198.51.100.7:54321', '198.51.100.8:54321'],
    ['2001:db8::7', '2001:db8:0:1::7'],
  ])('behind a balancer, a client that guesses keys does not block others: %s', async (client, other) => {
    const service = await aSeparateService({ gateway: { TRUSTED_PROXIES: '192.0.2.1,127.0.0.0/8' } });
    await exhaust(service, client);
    const { secret } = await service.aStudioWithKey();
    expect([await readStatus(service, newKeySecret(), other), await readStatus(service, secret, other)]).toEqual([
      401, 200,
    ]);
    // A client without a valid address counts as the balancer's.
    expect(await readStatus(service, newKeySecret(), 'unknown')).toBe(401);
  });

  test('clients behind an untrusted balancer count as one client', async () => {
    const service = await aSeparateService({ gateway: { TRUSTED_PROXIES: '192.0.2.1' } });
    const before = performance.now();
    await exhaust(service, '198.51.100.7');
    const status = await readStatus(service, newKeySecret(), '198.51.100.8');
    // On a busy machine the window may have passed.
    if (performance.now() - before < UNKNOWN_KEYS_WINDOW_SECONDS * 1000) expect(status).toBe(429);
  });
});

// @proves bounds-25
test('a request over the quota of its key causes no key look-up at the core', { tags: ['7.order'] }, async () => {
  const service = await aSeparateService({ ...METRICS, gateway: { ...METRICS.gateway, QUOTA_LIMIT: '1' } });
  const [{ secret }, other] = [await service.aStudioWithKey(), await service.aStudioWithKey()];
  expect((await service.get(secret)).status).toBe(200);
  const before = await keyLookUps(service);

  for (const { status } of await Promise.all(times(100, () => service.get(secret)))) expect(status).toBe(429);

  expect(await keyLookUps(service)).toBe(before);
  expect((await service.get(other.secret)).status).toBe(200);
});
