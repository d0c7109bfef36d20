import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { expect, onTestFinished, test } from 'vitest';
import { examine } from '../../operator/doctor/examine.ts';
import { doctor, wrongWith } from '../support/doctor.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { openedStore } from '../support/patience.ts';
import { ROOT, readAddress, run, temporaryFolder } from '../tools/processes.ts';
import { aRedis, describeWithRedisServer, startRedisCluster } from '../tools/servers.ts';

const CORE_TOKEN = 'the token of the tests of the doctor';

/** Starts a core and a gateway, and returns the settings that point to them. */
async function aDeployment(redisUrl: string) {
  const DATABASE_URL = `sqlite:${join(temporaryFolder(), 'leads.db')}`;
  const CORE_URL = await readAddress(run('src/main.ts', { env: { DATABASE_URL, CORE_TOKEN } }));
  const settings = { DATABASE_URL, CORE_TOKEN, CORE_URL, REDIS_URL: redisUrl };
  const PUBLIC_URL = await readAddress(run('gateway/main.ts', { env: settings }));
  return { ...settings, PUBLIC_URL };
}

describeWithRedisServer('a working deployment', () => {
  test('doctor prints one line for each part of a working deployment, and no secrets', async () => {
    const redis = await aRedis();
    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    const settings = await aDeployment(redis.url);

    const { status, printed } = await doctor(settings);
    const lines = printed.trimEnd().split('\n');
    expect(lines.map((line) => line.slice(0, 30).trim().split(/ {2,}/))).toEqual([
      ['ok', 'core settings'],
      ['ok', 'database'],
      ['ok', 'gateway settings'],
      ['ok', 'core'],
      ['ok', 'Redis'],
      ['ok', 'gateway'],
    ]);
    expect(printed).not.toContain(CORE_TOKEN);
    expect(printed).not.toContain(new URL(redis.url).password);
    expect(status).toBe(0);

    const { printed: json } = await doctor(settings, '--json');
    expect(JSON.parse(json)).toContainEqual({
      what: 'gateway',
      verdict: 'ok',
      says: `at ${settings.PUBLIC_URL} is ready`,
    });
  });

  test('doctor warns of a Redis that evicts keys and reports an unavailable one', async () => {
    const redis = await aRedis();
    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    expect(await wrongWith('Redis', 'gateway', { REDIS_URL: redis.url })).toEqual([
      expect.stringMatching(/^warning: forgets keys .*allkeys-lru/),
    ]);

    await redis.kill();
    expect(await wrongWith('Redis', 'gateway', { REDIS_URL: redis.url })).toEqual([
      expect.stringMatching(/^fault: cannot count requests: .*ECONNREFUSED/),
    ]);
    expect(await wrongWith('Redis', 'gateway', { REDIS_URL: 'redis+sentinel://127.0.0.1:1/quota' })).toEqual([
      expect.stringContaining('All sentinels are unreachable'),
    ]);
  });
});

/** States in which Redis answers but cannot count. */
const UNABLE: readonly [what: string, commands: readonly string[][], reason: RegExp][] = [
  ['is a replica', [['REPLICAOF', '127.0.0.1', '1']], /READONLY/],
  ['is full', [['CONFIG', 'SET', 'maxmemory', '1']], /OOM/],
  ['does not allow writes', [['ACL', 'SETUSER', 'gateway', '-incr']], /can't run this command|permissions/],
  ['allows only other keys', [['ACL', 'SETUSER', 'gateway', 'resetkeys', '~others:*']], /NOPERM/],
];

describeWithRedisServer('a Redis that answers but cannot count', () => {
  test.each(UNABLE)('doctor reports that requests cannot be counted if Redis %s', async (_, commands, reason) => {
    const redis = await aRedis();
    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    expect(await wrongWith('Redis', 'gateway', { REDIS_URL: redis.url })).toEqual([]);
    for (const [name = '', ...args] of commands) await redis.command(name, ...args);
    expect(await wrongWith('Redis', 'gateway', { REDIS_URL: redis.url })).toEqual([
      expect.stringMatching(new RegExp(`^fault: cannot count requests: .*(?:${reason.source}).*replica or full$`)),
    ]);
  });

  test('doctor reports a Redis cluster with full or dead nodes', async () => {
    const nodes = await startRedisCluster();
    onTestFinished(async () => {
      for (const node of nodes) await node.stop();
    });
    const env = { REDIS_URL: nodes[0]?.url ?? '', REDIS_CLUSTER: 'yes' };
    expect(await wrongWith('Redis', 'gateway', env)).toEqual([]);
    await nodes[2]?.command('CONFIG', 'SET', 'maxmemory', '1');
    expect(await wrongWith('Redis', 'gateway', env)).toEqual([
      expect.stringMatching(/^fault: counts for \d\d % of the studios only: /),
    ]);
    await nodes[2]?.kill();
    // The other nodes refuse as well, once they notice the failure.
    expect(await wrongWith('Redis', 'gateway', env)).toEqual([expect.stringMatching(/^fault: (?:counts for|cannot)/)]);
    for (const node of nodes.slice(0, 2)) await node.command('CONFIG', 'SET', 'maxmemory', '1');
    expect(await wrongWith('Redis', 'gateway', env)).toEqual([expect.stringMatching(/^fault: cannot count /)]);
  });
});

describeWithRedisServer('a Redis whose user has exactly the documented rights', () => {
  test("doctor succeeds with the documented rights of a gateway's Redis user", async () => {
    const redis = await aRedis();
    await redis.command('ACL', 'SETUSER', 'narrow', 'on', '>narrow', ...documentedRights());
    const REDIS_URL = redis.url.replace(/\/\/[^@]+@/, '//narrow:narrow@');
    expect(await wrongWith('Redis', 'gateway', { REDIS_URL })).toEqual([]);
    expect(await examine(['gateway'], { REDIS_URL })).toContainEqual(
      expect.objectContaining({ what: 'Redis', says: expect.stringContaining('maxmemory-policy') }),
    );
  });
});

/** Returns the keys and commands that docs/how-to/databases.md grants to a gateway's user. */
function documentedRights(): string[] {
  const guide = readFileSync(join(ROOT, 'docs/how-to/databases.md'), 'utf8');
  const [, commands = '', names = ''] = /`((?:\+\w+ ?)+)` on\s+`(~[^`]+)`/.exec(guide) ?? [];
  return [names, ...commands.split(' ')];
}

describeWithMongo('a database in MongoDB', (mongoUrl) => {
  test('doctor names the kind of server and reports an address with another replica set', async () => {
    const DATABASE_URL = `${mongoUrl()}doctor-${crypto.randomUUID()}`;
    const client = new MongoClient(DATABASE_URL);
    onTestFinished(() => client.close());
    const { ferretdb } = await client.db().command({ buildInfo: 1 });
    const findings = await examine(['core'], { DATABASE_URL });
    expect(findings.map(({ says }) => says).join('\n')).toMatch(
      ferretdb ? /^FerretDB v?2\S* answers \(in front of PostgreSQL\)$/m : /^MongoDB \S+ answers \(/m,
    );
    if (ferretdb) expect(findings.map(({ says }) => says).join()).not.toMatch(/standalone/);

    const wrong = new URL(DATABASE_URL);
    wrong.searchParams.set('replicaSet', 'another');
    expect(await wrongWith('database', 'core', { DATABASE_URL: wrong.href })).toEqual([
      expect.stringMatching(
        /^fault: MongoDB answers, and cannot be used: the replica set of the server is \S+, and that of the address another/,
      ),
    ]);
  });

  test('doctor reports a missing index by name and does not create it', async () => {
    const DATABASE_URL = `${mongoUrl()}doctor-${crypto.randomUUID()}`;
    const client = new MongoClient(DATABASE_URL);
    onTestFinished(() => client.close());
    const store = await openedStore(DATABASE_URL);
    const withoutWarnings = async () =>
      (await wrongWith('database', 'core', { DATABASE_URL })).filter((each) => each.startsWith('fault'));
    expect(await withoutWarnings()).toEqual([]);
    await store.close();

    await client.db().collection('leads').dropIndex('openContact');

    const missing = [expect.stringMatching(/^fault: leads\.openContact is missing\. /)];
    expect(await withoutWarnings()).toEqual(missing);
    expect(await withoutWarnings()).toEqual(missing);
  });
});
