import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createRedisQuota } from '../../gateway/admission/quota/redis-quota.ts';
import { newId } from '../../src/domain/new-id.ts';
import { type RedisWithSentinel, startRedisWithSentinel } from '../support/redis-sentinel.ts';
import { anAuthority } from '../tools/certificates.ts';
import {
  describeWithRedisServer,
  describeWithRedisTls,
  type RedisServer,
  startRedis,
  startRedisCluster,
} from '../tools/servers.ts';

/** A user and a password with characters that an address must encode. */
const USER = 'count:er@home';
const PASSWORD = `p@ss/w:rd%?#[]&+'"é`;
const CREDENTIALS = `${encodeURIComponent(USER)}:${encodeURIComponent(PASSWORD)}`;

const allowUser = (server: RedisServer) =>
  server.command('ACL', 'SETUSER', USER, 'on', `>${PASSWORD}`, '~lead-intake:quota:*', '+@all');

/** Expects a quota at an address to count. */
async function expectToCount(url: string, isCluster: boolean): Promise<void> {
  const quota = createRedisQuota(60, url, isCluster);
  onTestFinished(() => quota.close());
  await quota.firstAttempt;
  expect(await quota.fault()).toBeUndefined();
  expect(quota.countedShare()).toBe(1);
  const bearer = { apiKeyId: newId(), studioId: newId() };
  const limits = { key: 2, studio: undefined };
  const decisions = [];
  for (let sent = 0; sent < 3; sent += 1) decisions.push((await quota.consume(bearer, limits)).admitted);
  expect(decisions).toEqual([true, true, false]);
}

// @proves crashes-11
describeWithRedisServer('a Redis with a user, a password with special characters, and a database number', () => {
  let single: RedisServer;
  let nodes: readonly RedisServer[] = [];
  let sentinel: RedisWithSentinel;
  beforeAll(async () => {
    single = await startRedis();
    nodes = await startRedisCluster();
    sentinel = await startRedisWithSentinel();
    for (const server of [single, ...nodes, sentinel.primary, sentinel.replica]) await allowUser(server);
  });
  afterAll(() => Promise.all([single, ...nodes, sentinel].map((server) => server.stop())));

  const withCredentials = (url: string) => url.replace(/\/\/[^@]+@/, `//${CREDENTIALS}@`);

  test.each(['', '/0', '/3'])('counts on a single Redis with credentials, database %j', async (database) => {
    await expectToCount(withCredentials(single.url) + database, false);
    if (database === '/3') expect(String(await single.command('INFO', 'keyspace'))).toContain('db3:');
  });

  test.each(['', '/0', '/3'])('counts on the primary that Sentinels name, database %j', async (database) => {
    await expectToCount(withCredentials(sentinel.url) + database, false);
  });

  test('counts on a cluster, which has only one database', async () => {
    await expectToCount(withCredentials(nodes[0]?.url ?? ''), true);
  });

  test('a cluster with a dead node still counts for studios of other nodes, and is ready', async () => {
    const cluster = await startRedisCluster({ 'cluster-require-full-coverage': ['no'] });
    onTestFinished(async () => void (await Promise.all(cluster.map((node) => node.stop()))));
    const quota = createRedisQuota(60, cluster[0]?.url ?? '', true);
    onTestFinished(() => quota.close());
    await quota.firstAttempt;
    expect(await quota.fault()).toBeUndefined();

    await cluster[2]?.kill();
    await expect.poll(async () => [await quota.fault(), quota.countedShare() < 1]).toEqual([undefined, true]);
    expect(quota.countedShare()).toBeGreaterThan(0.3);

    for (const node of cluster) await node.kill();
    await expect.poll(() => quota.fault()).toEqual(expect.any(String));
    expect(quota.countedShare()).toBe(0);
  });
});

// @proves crashes-11
describeWithRedisTls('a Redis over TLS, by the name in its certificate', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-'));
  const trusted = getCACertificates('default');
  let single: RedisServer;
  let nodes: readonly RedisServer[] = [];
  beforeAll(async () => {
    const authority = await anAuthority('of the Redis tests');
    const certificate = await authority.issue('localhost', 'server');
    const toPath = (name: string, contents: string) => {
      writeFileSync(join(folder, name), contents);
      return join(folder, name);
    };
    const tls = {
      'tls-cert-file': [toPath('cert.pem', certificate.cert)],
      'tls-key-file': [toPath('key.pem', certificate.key)],
      'tls-ca-cert-file': [toPath('ca.pem', authority.cert)],
      'tls-auth-clients': ['no'],
    };
    setDefaultCACertificates([...trusted, authority.cert]);
    single = await startRedis(tls, 'tls');
    const ownClient = await authority.issue('localhost', 'client');
    nodes = await startRedisCluster(
      {
        ...tls,
        // Nodes announce TLS ports only if they also use TLS among themselves.
        'tls-cluster': ['yes'],
        'tls-client-cert-file': [toPath('client.pem', ownClient.cert)],
        'tls-client-key-file': [toPath('client-key.pem', ownClient.key)],
        'cluster-announce-hostname': ['localhost'],
        'cluster-preferred-endpoint-type': ['hostname'],
      },
      'tls',
    );
    for (const server of [single, ...nodes]) await allowUser(server);
  });
  afterAll(async () => {
    setDefaultCACertificates(trusted);
    await Promise.all([single, ...nodes].map((server) => server.stop()));
    rmSync(folder, { recursive: true, force: true });
  });

  const address = ({ tlsPort }: RedisServer) => `rediss://${CREDENTIALS}@localhost:${tlsPort}`;

  test.each(['', '/3'])('counts on a single Redis over TLS, database %j', (database) =>
    expectToCount(address(single) + database, false),
  );

  test('counts on a cluster over TLS, whichever node the address names', async () => {
    for (const node of nodes) await expectToCount(address(node), true);
  });
});
