import { once } from 'node:events';
import { chmodSync, copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ConsumerStart } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { tokenHash } from '../../src/callers-file.ts';
import { CALLER_ROLES } from '../../src/domain/caller.ts';
import { openStore } from '../../src/store/open-store.ts';
import { DAY_MS, plus } from '../support/builders.ts';
import { CLI, executed } from '../support/command-line.ts';
import { connectToCore } from '../support/core-clients.ts';
import { doctor, wrongWith, wrongWithRecords } from '../support/doctor.ts';
import { aWebhookSecret } from '../support/webhooks.ts';
import { anAuthority, writeCertificate } from '../tools/certificates.ts';
import { readAddress, run, temporaryFolder } from '../tools/processes.ts';
import { freePort } from '../tools/servers.ts';

const makeToken = (role: string) => `the token of the tests of the doctor for ${role}`;

test('doctor reports every fault of the settings, checks nothing else, and ends with status 1', async () => {
  const { status, printed } = await doctor({ CORE_PORT: 'ten', QUOTA_LIMIT: '0', LOG_LEVEL: 'warn' });

  expect(printed).toMatch(/^FAULT +core settings +CORE_PORT must be a whole number/m);
  expect(printed).toMatch(/^FAULT +gateway settings +QUOTA_LIMIT must be a whole number/m);
  expect(printed).not.toMatch(/^\w+ +(?:database|Redis) /m);
  expect(status).toBe(1);
});

describe('the core', () => {
  test('doctor reports a core that gives this caller no gateway or relay role', async () => {
    const folder = temporaryFolder();
    const [callersFile, endpointsFile] = [join(folder, 'callers.json'), join(folder, 'endpoints.json')];
    const callers = CALLER_ROLES.map((role) => [
      role,
      {
        may: [role],
        tokens: [{ sha256: tokenHash(makeToken(role)) }],
        ...(role === 'feed' && { consumers: ['hooks'] }),
      },
    ]);
    writeFileSync(callersFile, JSON.stringify({ callers: Object.fromEntries(callers) }));
    const endpoint = { url: 'https://example.org', secrets: [aWebhookSecret()] };
    writeFileSync(endpointsFile, JSON.stringify({ endpoints: { hooks: endpoint } }));
    const env = { DATABASE_URL: `sqlite:${join(folder, 'leads.db')}`, CORE_CALLERS_FILE: callersFile };
    const CORE_URL = await readAddress(run('src/main.ts', { env }));
    const crm = connectToCore(CORE_URL, makeToken('crm'));
    onTestFinished(() => crm.close());
    await crm.consumers.createConsumer({ consumer: { name: 'hooks', allStudios: true }, start: ConsumerStart.NOW });

    const relay = { RELAY_CORE_ADDRESS: CORE_URL, RELAY_ENDPOINTS_FILE: endpointsFile };
    for (const role of CALLER_ROLES) {
      expect({
        role,
        gateway: await wrongWith('core', 'gateway', { CORE_URL, CORE_TOKEN: makeToken(role) }),
        relay: await wrongWith('core', 'relay', { ...relay, RELAY_TOKEN: makeToken(role) }),
      }).toEqual({
        role,
        gateway: role === 'gateway' ? [] : [expect.stringMatching(/^fault: refuses this caller as a gateway: /)],
        relay: ['crm', 'feed'].includes(role)
          ? []
          : [
              expect.stringMatching(
                /^fault: has no consumer hooks for this caller .* needs crm or feed in the callers/,
              ),
            ],
      });
    }
    expect(await wrongWith('core', 'gateway', { CORE_URL })).toEqual([
      expect.stringMatching(/^fault: does not accept this CORE_TOKEN: /),
    ]);
  });

  test('doctor reports an unavailable core or gateway', async () => {
    const nowhere = `http://127.0.0.1:${await freePort()}`;
    for (const [what, env] of [
      ['core', { CORE_URL: nowhere }],
      ['gateway', { PUBLIC_URL: nowhere }],
    ] as const) {
      expect(await wrongWith(what, 'gateway', env)).toEqual([
        expect.stringMatching(/^fault: at http:\/\/127\.0\.0\.1:\d+ does not answer: .*ECONNREFUSED/),
      ]);
    }
  });

  test('doctor reports a core whose certificate comes from an untrusted authority', async () => {
    const folder = temporaryFolder();
    const certificate = await (await anAuthority('of the test')).issue('localhost', 'server');
    const { cert, key } = writeCertificate(folder, 'core', certificate);
    const env = {
      DATABASE_URL: `sqlite:${join(folder, 'leads.db')}`,
      CORE_TLS_CERT_FILE: cert,
      CORE_TLS_KEY_FILE: key,
    };
    const { port } = new URL(await readAddress(run('src/main.ts', { env })));

    expect(await wrongWith('core', 'gateway', { CORE_URL: `https://localhost:${port}` })).toEqual([
      expect.stringMatching(/^fault: .* does not answer: .*certificate/),
    ]);
  });
});

/** Starts a web server in place of a gateway. */
async function aServer(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.each([502, 504])('doctor does not blame PUBLIC_URL when a balancer answers %s', async (status) => {
  const PUBLIC_URL = await aServer((_, response) => response.writeHead(status).end());
  const says = `^fault: at http:.* does not answer: the proxy in front of it answers ${status}\\. Check that a gateway runs`;
  expect(await wrongWith('gateway', 'gateway', { PUBLIC_URL })).toEqual([expect.stringMatching(new RegExp(says))]);
});

test('doctor connects to this machine without the proxy of the environment', async () => {
  let asked = 0;
  const url = await aServer((_, response) => {
    asked += 1;
    response.writeHead(502).end();
  });
  const throughProxy = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: url, http_proxy: url };
  const port = await freePort();
  for (const host of ['127.0.0.1', 'localhost']) {
    const { printed } = await doctor({ ...throughProxy, PUBLIC_URL: `http://${host}:${port}` }, '--json');
    expect(printed).toContain('does not answer: ');
  }
  expect(asked).toBe(0);
});

test('doctor and the health check reject a web server that is not a gateway', async () => {
  const PUBLIC_URL = await aServer((_, response) => response.end('<h1>It works!</h1>'));
  expect(await wrongWith('gateway', 'gateway', { PUBLIC_URL })).toEqual([
    expect.stringMatching(/^fault: at http:.*healthz answers 200, but not as a gateway does: check that PUBLIC_URL/),
  ]);
  const health = run('gateway/check-health.ts', { env: { GATEWAY_PORT: new URL(PUBLIC_URL).port } });
  expect(await health.ended()).toBe(1);
  expect(health.output()).toContain(': 200, it is not ready');
});

test.each([
  ['has expired', -10, -1, /^fault: \S+ expired at .*: renew it/],
  ['is not valid yet', 1, 100, /^fault: \S+ is not valid before /],
  ['ends soon', -10, 20.5, /^warning: \S+ expires in 20 days: renew it/],
])("doctor reports that the core's certificate %s", async (_, from, until, message) => {
  const folder = temporaryFolder();
  const authority = await anAuthority('of the test');
  const { cert, key } = writeCertificate(
    folder,
    'core',
    await authority.issue('localhost', 'server', [daysFromNow(from), daysFromNow(until)]),
  );
  const settings = {
    DATABASE_URL: `sqlite:${join(folder, 'leads.db')}`,
    CORE_TLS_CERT_FILE: cert,
    CORE_TLS_KEY_FILE: key,
  };
  expect(await wrongWith("core's certificates", 'core', settings)).toEqual([expect.stringMatching(message)]);

  const { key: other } = await authority.issue('localhost', 'server');
  writeFileSync(key, other);
  expect(await wrongWith("core's certificates", 'core', settings)).toContain(
    `fault: ${key} is not the key of the certificate in ${cert}`,
  );
});

const daysFromNow = (days: number) => plus(new Date(), days * DAY_MS);

describe('the database', () => {
  test('doctor does not create a missing database, and reports a file that is not a database', async () => {
    const path = join(temporaryFolder(), 'leads.db');
    const env = { DATABASE_URL: `sqlite:${path}` };
    expect(await wrongWith('database', 'core', env)).toEqual([expect.stringMatching(/^warning: there is none at /)]);
    expect(existsSync(path)).toBe(false);
    writeFileSync(path, '');
    expect(await wrongWith('database', 'core', env)).toEqual([expect.stringMatching(/^warning: there is none at /)]);

    writeFileSync(path, 'no database, but long enough to be looked at: '.repeat(100));
    expect(await wrongWith('database', 'core', env)).toEqual([expect.stringMatching(/^fault: .*not a database/)]);
  });

  test('doctor reports a file that others may open or that another release wrote', async () => {
    const path = join(temporaryFolder(), 'leads.db');
    const env = { DATABASE_URL: `sqlite:${path}` };
    await (await openStore(env.DATABASE_URL)).close();
    expect(await wrongWith('database', 'core', env)).toEqual([]);

    chmodSync(path, 0o644);
    expect(await wrongWith('database', 'core', env)).toEqual([
      expect.stringMatching(/^warning: others on this machine may open .*: chmod 600$/),
    ]);
    chmodSync(path, 0o600);

    const database = new DatabaseSync(path, { timeout: 100_000 });
    onTestFinished(() => database.close());
    for (const [schema, message] of [
      [1, /^fault: SQLite at .* has data of a release before 1\.2: start each later release up to 1\.2 first/],
      [1000, /^fault: SQLite at .* was written by a newer release/],
    ] as const) {
      database.exec(`PRAGMA user_version = ${schema}`);
      expect(await wrongWith('database', 'core', env)).toEqual([expect.stringMatching(message)]);
    }
  });

  test('doctor reports a MongoDB that does not answer', async () => {
    const DATABASE_URL = `mongodb://127.0.0.1:${await freePort()}/leads`;
    expect(await wrongWith('database', 'core', { DATABASE_URL })).toEqual([
      expect.stringMatching(/^fault: MongoDB does not answer: .*ECONNREFUSED/),
    ]);
  });
});

// @proves limits-12
describe('doctor --records', () => {
  /** Copies a database of release 1.2 with a record of every kind. @param isOpened whether this release has opened it */
  async function aCopy(isOpened: boolean) {
    const path = join(temporaryFolder(), 'leads.db');
    copyFileSync(join(import.meta.dirname, '../upgrade/sqlite-1.2.db'), path);
    const env = { DATABASE_URL: `sqlite:${path}` };
    if (isOpened) await (await openStore(env.DATABASE_URL)).close();
    return { path, env };
  }
  const records = (env: Record<string, string>, ...args: string[]) =>
    executed(CLI, [...args, '--records'], { env }).catch((error) => error);

  test('doctor --records reads every record of a sound file and changes no byte', async () => {
    const { path, env } = await aCopy(true);
    const before = readFileSync(path);

    const { code = 0, stdout } = await records(env, 'doctor', 'core');

    expect(stdout).toMatch(/^ok +records +all [1-9]\d+ can be read$/m);
    expect(code).toBe(0);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('doctor --records ends with status 1 if a record cannot be read', async () => {
    const { path, env } = await aCopy(true);
    const database = new DatabaseSync(path);
    database.exec("UPDATE members SET role = 'boss'");
    database.close();

    const { code, stdout } = await records(env, '--json', 'doctor', 'core');

    const says = expect.stringMatching(/^include 1 members that cannot be read: berlin\/owner\. Correct them \(docs/);
    expect(JSON.parse(stdout).at(-1)).toEqual({ what: 'records', verdict: 'fault', says });
    expect(code).toBe(1);
  });

  test('doctor --records finds a wrong byte at the start of any page of the file', async () => {
    const { path, env } = await aCopy(true);
    const whole = new DatabaseSync(path);
    // Free pages contain nothing to check.
    whole.exec('VACUUM');
    whole.close();
    const content = readFileSync(path);
    const missed: number[] = [];
    for (let at = 0; at < content.length; at += 4096) {
      const wrong = Buffer.from(content);
      // The first page begins with the magic string of SQLite, followed by the page size.
      const place = at === 0 ? 16 : at;
      wrong[place] = Number(wrong[place]) ^ 0xff;
      writeFileSync(path, wrong);
      const [fault = ''] = await wrongWithRecords(env);
      if (!/^cannot be read: .*restore a backup/.test(fault)) missed.push(at / 4096);
    }
    expect(missed).toEqual([]);
  });

  test('doctor --records finds pages that belong to no table', async () => {
    const { path, env } = await aCopy(true);
    const database = new DatabaseSync(path, { defensive: false });
    database.exec("PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'audit_events_by_subject'");
    database.close();

    const faults = await wrongWithRecords(env);
    expect(faults).toEqual([expect.stringMatching(/^cannot be read: .* is damaged: restore a backup \(.*never used/s)]);
  });

  test('doctor --records neither changes a file of release 1.2 nor creates one', async () => {
    const { path, env } = await aCopy(false);
    const before = readFileSync(path);
    const former = /^cannot be read: .*is not of this release: start a core of this release on it first/;
    expect(await wrongWithRecords(env)).toContainEqual(expect.stringMatching(former));
    expect(readFileSync(path).equals(before)).toBe(true);

    const absent = join(temporaryFolder(), 'none.db');
    const none = await wrongWithRecords({ DATABASE_URL: `sqlite:${absent}` });
    expect(none).toEqual([expect.stringMatching(/^cannot be read: .*cannot be opened/)]);
    expect(existsSync(absent)).toBe(false);
  });

  test('doctor --records is refused for a relay, and reads nothing if a setting is wrong', async () => {
    const relay = await records({}, 'doctor', 'relay');
    expect(relay).toMatchObject({ code: 1, stdout: '', stderr: 'a relay has no database\n' });
    expect(await wrongWithRecords({ DATABASE_URL: 'sqlite:' })).toEqual(['were not read: correct the settings']);
  });
});
