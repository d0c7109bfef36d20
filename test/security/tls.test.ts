import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createSecureServer, type Http2SecureServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import type { Environment } from '../../common/settings.ts';
import { aGateway } from '../integration/a-gateway.ts';
import { DAY_MS, plus } from '../support/builders.ts';
import { startTestCore, type TestCore } from '../support/grpc.ts';
import { aService, expectProblem, LEADS, PUBLIC_URL, CORE_TOKEN as SERVICE_TOKEN } from '../support/service.ts';
import { type Authority, anAuthority, type Certificate } from '../tools/certificates.ts';
import { readAddress, run, sharedFolder } from '../tools/processes.ts';
import { describeWithRedisTls, freePort, type RedisServer, startRedis } from '../tools/servers.ts';

const folder = sharedFolder();
let authority: Authority;
let otherAuthority: Authority;
/** The certificates that the core and the gateway should present. */
let server: Certificate;
let client: Certificate;

beforeAll(async () => {
  authority = await anAuthority('The authority of the tests');
  otherAuthority = await anAuthority('Another authority');
  server = await authority.issue('localhost', 'server');
  client = await authority.issue('gateway', 'client');
});

const daysFromNow = (from: number, until: number) =>
  [plus(new Date(), from * DAY_MS), plus(new Date(), until * DAY_MS)] as const;

function fileWith(contents: string): string {
  const path = join(folder(), `${crypto.randomUUID()}.pem`);
  writeFileSync(path, contents);
  return path;
}

/** Starts a gateway whose core is at a port of `localhost`; returns its address. */
async function startGatewayAt(port: number, env: Environment = {}): Promise<string> {
  const gateway = await aGateway(`https://localhost:${port}`, { CORE_CA_FILE: fileWith(authority.cert), ...env });
  return gateway.url;
}

/** Returns the settings for the certificate that a gateway presents to its core. */
const settingsFor = ({ cert, key }: Certificate) => ({
  CORE_CLIENT_CERT_FILE: fileWith(cert),
  CORE_CLIENT_KEY_FILE: fileWith(key),
});

/** Sends a request with a well-formed key that only the core can find to be unknown. */
const sendRequest = (url: string) =>
  fetch(`${url}${LEADS}`, { headers: { authorization: `Bearer ${newKeySecret()}` } });

/** Expects that the request reached the core. */
async function expectConnected(url: string): Promise<void> {
  await expectProblem(await sendRequest(url), 401, 'integration_key_invalid');
  await expect.poll(async () => (await fetch(`${url}/readyz`)).status).toBe(200);
}

/** Expects that the gateway could not reach the core, and that the error does not blame the caller. */
async function expectNotConnected(url: string): Promise<void> {
  await expectProblem(await sendRequest(url), 503, 'integration_unavailable', []);
  expect((await fetch(`${url}/readyz`)).status).toBe(503);
}

async function aCore(env: Environment = {}): Promise<TestCore> {
  const core = await startTestCore({
    CORE_TLS_CERT_FILE: fileWith(server.cert),
    CORE_TLS_KEY_FILE: fileWith(server.key),
    ...env,
  });
  onTestFinished(() => core.stop());
  return core;
}

/** Starts a server instead of the core; `calls` counts the calls that reached it. */
async function anImpostor(certificate: Certificate): Promise<{ port: number; calls(): number }> {
  const impostor: Http2SecureServer = createSecureServer({ ...certificate });
  let calls = 0;
  impostor.on('stream', (stream: ServerHttp2Stream) => {
    calls += 1;
    stream.respond({ ':status': 200 });
    stream.end();
  });
  impostor.listen(0, '127.0.0.1');
  await once(impostor, 'listening');
  onTestFinished(() => void impostor.close());
  return { port: (impostor.address() as AddressInfo).port, calls: () => calls };
}

test('a gateway and a core that trust each other communicate by mutual TLS', async () => {
  const core = await aCore({ CORE_TLS_CLIENT_CA_FILE: fileWith(authority.cert) });
  await expectConnected(await startGatewayAt(core.port, settingsFor(client)));
});

test('the health check of a core with mutual TLS needs a certificate of its authority', async () => {
  const core = await aCore({ CORE_TLS_CLIENT_CA_FILE: fileWith(authority.cert) });
  const env = { CORE_PORT: `${core.port}`, CORE_TLS_CERT_FILE: fileWith(server.cert) };
  const foreign = await otherAuthority.issue('gateway', 'client');

  expect(await run('src/check-health.ts', { env: { ...env, ...settingsFor(client) } }).ended()).toBe(0);
  expect(await run('src/check-health.ts', { env: { ...env, ...settingsFor(foreign) } }).ended()).toBe(1);
  expect(await run('src/check-health.ts', { env }).ended()).toBe(1);
});

// @proves secrets-11
describe('a gateway and a core that it does not trust', () => {
  test.each<[what: string, certificateOf: () => Promise<Certificate>]>([
    ['of another authority', () => otherAuthority.issue('localhost', 'server')],
    ['with a certificate for another name', () => authority.issue('core.example.test', 'server')],
    ['whose certificate has expired', () => authority.issue('localhost', 'server', daysFromNow(-2, -1))],
    ["with a client's certificate", () => authority.issue('localhost', 'client')],
  ])('a gateway sends nothing to a core %s', async (_, certificateOf) => {
    const impostor = await anImpostor(await certificateOf());
    await expectNotConnected(await startGatewayAt(impostor.port));
    expect(impostor.calls()).toBe(0);
  });

  test('a gateway sends nothing to a core whose authority it does not trust', async () => {
    const impostor = await anImpostor(server);
    await expectNotConnected(await startGatewayAt(impostor.port, { CORE_CA_FILE: undefined }));
    expect(impostor.calls()).toBe(0);
  });

  test('a gateway with TLS sends nothing to a core without it', async () => {
    const core = await startTestCore();
    onTestFinished(() => core.stop());
    await expectNotConnected(await startGatewayAt(core.port));
  });

  test('a gateway does send requests to a trusted core, so the others fail only for their faults', async () => {
    const impostor = await anImpostor(server);
    await sendRequest(await startGatewayAt(impostor.port));
    expect(impostor.calls()).toBeGreaterThan(0);
  });
});

// @proves secrets-11
describe('a core that requires client certificates', () => {
  test.each<[what: string, certificateOf: () => Promise<Certificate | undefined>]>([
    ['without a certificate', async () => undefined],
    ['of another authority', () => otherAuthority.issue('gateway', 'client')],
    ['whose certificate has expired', () => authority.issue('gateway', 'client', daysFromNow(-2, -1))],
    ["with a server's certificate", () => authority.issue('gateway', 'server')],
  ])('a core that requires certificates rejects a gateway %s and serves the next', async (_, certificateOf) => {
    const core = await aCore({ CORE_TLS_CLIENT_CA_FILE: fileWith(authority.cert) });
    const own = await certificateOf();
    await expectNotConnected(await startGatewayAt(core.port, own ? settingsFor(own) : {}));
    await expectConnected(await startGatewayAt(core.port, settingsFor(client)));
  });
});

// @proves node-21
test('a gateway does not start with a key of another certificate, or with invalid authorities', async () => {
  const start = (env: Record<string, string>) => startGatewayAt(1, env);
  await expect(start(settingsFor({ cert: client.cert, key: server.key }))).rejects.toThrow(
    /is not the key of the certificate/,
  );
  await expect(start({ CORE_CA_FILE: fileWith('none') })).rejects.toThrow(/has no certificates \(PEM\)/);
});

// @proves secrets-11
describeWithRedisTls('a gateway that counts in Redis over TLS', () => {
  const service = aService();

  /** A Redis that presents a certificate, and its TLS address. */
  async function aRedis(certificate: Certificate): Promise<{ redis: RedisServer; url: string }> {
    const port = String(await freePort());
    const redis = await startRedis({
      'tls-port': [port],
      'tls-cert-file': [fileWith(certificate.cert)],
      'tls-key-file': [fileWith(certificate.key)],
      'tls-ca-cert-file': [fileWith(authority.cert)],
      'tls-auth-clients': ['no'],
    });
    onTestFinished(() => redis.stop());
    const { username, password } = new URL(redis.url);
    return { redis, url: `rediss://${username}:${password}@localhost:${port}` };
  }

  /** Starts a gateway in a separate process that trusts the authority in addition to the public ones. */
  async function gatewayWith(REDIS_URL: string, trusted: string = authority.cert): Promise<string> {
    const gateway = run('gateway/main.ts', {
      env: {
        CORE_TOKEN: SERVICE_TOKEN,
        CORE_URL: service.coreUrl,
        PUBLIC_URL,
        REDIS_URL,
        NODE_EXTRA_CA_CERTS: fileWith(trusted),
      },
    });
    return readAddress(gateway);
  }

  /** Returns how often another client presented a password to a Redis. */
  const collectGreetings = async (redis: RedisServer) => {
    const stats = String(await redis.command('INFO', 'commandstats'));
    const counts = [...stats.matchAll(/cmdstat_(?:hello|auth):calls=(\d+)/g)].map(([, count]) => Number(count));
    return counts.reduce((sum, count) => sum + count, 0) - 1;
  };

  test('a gateway counts requests in Redis over TLS', async () => {
    const { redis, url } = await aRedis(server);
    const { secret } = await service.aStudioWithKey();
    const answer = await fetch(`${await gatewayWith(url)}${LEADS}`, { headers: { authorization: `Bearer ${secret}` } });
    expect(answer.status).toBe(200);
    expect(await collectGreetings(redis)).toBeGreaterThan(0);
    // Excludes the key that readiness uses.
    expect(await redis.command('KEYS', 'lead-intake:quota:*-*')).toHaveLength(1);
  });

  test.each<[what: string, certificateOf: () => Promise<Certificate>, trusted?: () => string]>([
    ['of another authority', () => otherAuthority.issue('localhost', 'server')],
    ['of an authority that it does not trust', async () => server, () => otherAuthority.cert],
  ])('a gateway sends no password to a Redis %s, and admits no request', async (_, certificateOf, trusted) => {
    const { redis, url } = await aRedis(await certificateOf());
    const { secret } = await service.aStudioWithKey();
    const gateway = await gatewayWith(url, trusted?.());
    const answer = await fetch(`${gateway}${LEADS}`, { headers: { authorization: `Bearer ${secret}` } });
    await expectProblem(answer, 503, 'integration_rate_unavailable');
    expect(await collectGreetings(redis)).toBe(0);
  });
});

describe('a caller that the core identifies by the subject of its certificate', () => {
  const subject = { CN: 'gateway of the website' };
  const callers = { website: { may: ['gateway'], certificateSubject: subject } };
  const aNamingCore = () =>
    aCore({
      CORE_TOKEN: undefined,
      CORE_TLS_CLIENT_CA_FILE: fileWith(authority.cert),
      CORE_CALLERS_FILE: fileWith(JSON.stringify({ callers })),
    });

  test('a caller with the right certificate subject is admitted without a token', async () => {
    const core = await aNamingCore();
    const own = await authority.issue(subject.CN, 'client');
    await expectConnected(await startGatewayAt(core.port, { ...settingsFor(own), CORE_TOKEN: undefined }));

    for (const name of ['gateway', 'gateway of the website 2', 'localhost']) {
      const other = await authority.issue(name, 'client');
      const url = await startGatewayAt(core.port, { ...settingsFor(other), CORE_TOKEN: undefined });
      await expectProblem(await sendRequest(url), 503, 'integration_unavailable', []);
    }
  });

  test('a caller with both a certificate and an unknown token is refused', async () => {
    const core = await aNamingCore();
    const own = await authority.issue(subject.CN, 'client');
    const url = await startGatewayAt(core.port, {
      ...settingsFor(own),
      CORE_TOKEN: 'a token that the core does not have',
    });
    await expectProblem(await sendRequest(url), 503, 'integration_unavailable', []);
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
  });
});
