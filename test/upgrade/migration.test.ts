import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ADDED_TEXTS } from '../../src/domain/lead-data.ts';
import { openStore } from '../../src/store/open-store.ts';
import { openDatabase } from '../../src/store/sqlite/open-database.ts';
import { toColumn } from '../../src/store/sqlite/rows.ts';
import { times } from '../support/builders.ts';
import { ROOT, temporaryFolder } from '../tools/processes.ts';
import { testSize } from '../tools/test-size.ts';

vi.setConfig({ testTimeout: 300_000 });

/** The number of kills during a migration, and the number of its leads. */
const KILLS = testSize('MIGRATION_KILLS', { usual: 10, soak: 50 });
const LEADS = 1500;

function aFileOf12(): string {
  const path = join(temporaryFolder(), 'leads.db');
  copyFileSync(join(import.meta.dirname, 'sqlite-1.2.db'), path);
  return path;
}

function withDatabase<Result>(path: string, work: (database: DatabaseSync) => Result): Result {
  const database = new DatabaseSync(path);
  try {
    return work(database);
  } finally {
    database.close();
  }
}

const readVersion = (path: string) =>
  withDatabase(path, (database) => database.prepare('PRAGMA user_version').get()?.user_version);

/** The tables that a migration must not change; for `leads`, the columns of release 1.2. */
const KEPT = [
  'members',
  'lead_sources',
  'api_keys',
  'contact_claims',
  'former_contacts',
  'consumers',
  'deliveries',
  'sqlite_sequence',
];

/** Returns a digest of the data that a file of either release must have. */
const readContents = (path: string) =>
  withDatabase(path, (database) => {
    const digest = createHash('sha256');
    const version = database.prepare('PRAGMA user_version').get()?.user_version;
    for (const { display_name: name, note, api_key_id: _, ...row } of database
      .prepare('SELECT * FROM leads ORDER BY number')
      .iterate()) {
      for (const text of ADDED_TEXTS) delete row[toColumn(text)];
      const texts =
        version === 9 ? [name ?? '""', note ?? 'null'].map((text) => JSON.parse(text as string)) : [name, note];
      digest.update(JSON.stringify(texts));
      for (const [, value] of Object.entries(row).toSorted())
        digest.update(value instanceof Uint8Array ? value : `${value},`);
    }
    for (const table of KEPT)
      digest.update(JSON.stringify(database.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all()));
    return digest.digest('hex');
  });

/** Opens a file in a separate process, as the start of a core does. */
const openElsewhere = (path: string) => {
  const { href } = pathToFileURL(join(ROOT, 'src/store/sqlite/open-database.ts'));
  const script = `import { openDatabase } from '${href}'; openDatabase('${path}').database.close();`;
  return spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'ignore' });
};

// @proves crashes-51
test('opening a file of release 1.2 migrates it and leaves an unchanged copy', () => {
  const path = aFileOf12();
  const before = readContents(path);

  openDatabase(path).database.close();

  expect([readVersion(path), readContents(path)]).toEqual([9, before]);
  const copy = `${path}.before-2.0`;
  expect(statSync(copy).mode & 0o777).toBe(0o600);
  expect([readVersion(copy), readContents(copy)]).toEqual([8, before]);
  const left = readdirSync(join(path, '..')).filter((name) => !/-(?:wal|shm)$/.test(name));
  expect(left.toSorted()).toEqual(['leads.db', 'leads.db.before-2.0']);
});

test('a migration ends the retention of studios with holds, but of no other studio', async () => {
  const path = aFileOf12();
  withDatabase(path, (database) =>
    database.exec(`
      INSERT INTO studio_retentions (studio_id, days, since) VALUES ('berlin', 30, 1), ('moves', 90, 1);`),
  );

  const store = await openStore(`sqlite:${path}`);
  onTestFinished(() => store.close());

  const readDays = async (id: string) => (await store.findStudio(id))?.retention?.days ?? null;
  // One lead of berlin is held, and the whole studio named held.
  expect([await readDays('berlin'), await readDays('held'), await readDays('moves')]).toEqual([null, null, 90]);
  expect((await store.listAuditEvents('berlin', null))[0]).toMatchObject({
    action: 'studio-retention-changed',
    caller: '(migration)',
    from: '30',
    to: null,
  });
});

test('a migration preserves the settings of studios, which release 1.2 has in separate tables', async () => {
  const path = aFileOf12();
  withDatabase(path, (database) =>
    database.exec(`
      INSERT INTO studio_retentions (studio_id, days, since) VALUES ('moves', 90, 1);
      INSERT OR IGNORE INTO studios_without_enquiries (studio_id) VALUES ('moves');
      INSERT OR IGNORE INTO test_studios (studio_id) VALUES ('moves');
      DELETE FROM former_regions WHERE studio_id = 'moves';
      INSERT INTO former_regions (studio_id, region_code) VALUES ('moves', ''), ('moves', 'CH');`),
  );

  const store = await openStore(`sqlite:${path}`);
  onTestFinished(() => store.close());

  const settings = { keepEnquiries: false, isTest: true, retention: { days: 90, since: new Date(1) } };
  expect(await store.findStudio('moves')).toMatchObject({ ...settings, formerRegions: [null, 'CH'] });
  const defaults = { keepEnquiries: true, isTest: false, retention: null, formerRegions: [] };
  expect(await store.findStudio('berlin')).toMatchObject(defaults);
});

test('a backup of release 1.2 is still known as one after it was restored and migrated', async () => {
  const path = aFileOf12();
  withDatabase(path, (database) => database.exec('UPDATE database_epoch SET backed_up_at = 1795829715000'));

  const store = await openStore(`sqlite:${path}`);
  onTestFinished(() => store.close());

  expect(await store.findEpoch()).toMatchObject({ backedUpAt: new Date(1795829715000) });
});

test('a file of release 1.2 is not migrated while another process uses it', () => {
  const path = aFileOf12();
  withDatabase(path, (other) => {
    other.exec("PRAGMA journal_mode = WAL; UPDATE studios SET quota_limit = 7 WHERE id = 'berlin'");
    const before = statSync(path).ino;

    expect(() => openDatabase(path)).toThrow(
      /is of release 1\.2, and another process uses it: stop that process first/,
    );

    other.exec("UPDATE studios SET quota_limit = 8 WHERE id = 'berlin'");
    expect(statSync(path).ino).toBe(before);
  });
  expect(readVersion(path)).toBe(8);
  openDatabase(path).database.close();
  expect(readVersion(path)).toBe(9);
});

test('a file whose copy cannot be written stays unchanged, and the error names the obstacle', () => {
  const path = aFileOf12();
  const before = readContents(path);
  mkdirSync(`${path}.before-2.0`);

  expect(() => openDatabase(path)).toThrow(`the copy ${path}.before-2.0 is a folder`);

  expect([readVersion(path), readContents(path)]).toEqual([8, before]);
});

test('a migration stops at two leads with one idempotency key', () => {
  const path = aFileOf12();
  withDatabase(path, (database) =>
    database.exec(`
      DROP INDEX leads_by_idempotency_key;
      UPDATE leads SET idempotency_key = (SELECT idempotency_key FROM leads WHERE number = 1) WHERE number = 2`),
  );

  expect(() => openDatabase(path)).toThrow(/has two leads with one idempotency key: .*doctor/);

  expect(readVersion(path)).toBe(8);
});

test('a migration prints its progress once a second', () => {
  const path = aFileOf12();
  const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  let now = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 600));
  onTestFinished(() => [written, clock].forEach((spy) => void spy.mockRestore()));

  openDatabase(path).database.close();

  const lines = written.mock.calls.map(([line]) => String(line));
  expect(lines.some((line) => /bringing .*leads\.db from release 1\.2 to 2\.0: \d+ of 15 leads\n$/.test(line))).toBe(
    true,
  );
  expect(lines.at(-1)).toMatch(/leads\.db is now of release 2\.0\. .*before-2\.0 has it as it was.* holds: held\.\n$/);
});

test('processes that start concurrently migrate a file once', async () => {
  const path = aFileOf12();
  const before = readContents(path);

  const statuses = await Promise.all(times(4, async () => (await once(openElsewhere(path), 'exit'))[0]));

  expect(statuses).toContain(0);
  expect([readVersion(path), readContents(path)]).toEqual([9, before]);
  const events = withDatabase(path, (database) =>
    database.prepare("SELECT count(*) AS events FROM audit_events WHERE caller = '(migration)'").get(),
  );
  expect(events).toEqual({ events: 1 });
});

// @proves crashes-51
test(`a migration killed at any of ${KILLS} moments leaves a file of either release`, async () => {
  const original = aFileOf12();
  withDatabase(original, (database) =>
    database.exec(`
      WITH RECURSIVE counted (n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM counted WHERE n < ${100 + LEADS})
      INSERT INTO leads (studio_number, id, display_name, contact_type, contact_value, stage, created_at, updated_at,
          contact_keys, rule_version, idempotency_key, fingerprint, fingerprint_version)
        SELECT 1, unhex(printf('%032x', n)), 'Ada', 'email', 'ada' || n || '@example.org', 'won', n, n, x'', 2,
          unhex(printf('%032x', n)), zeroblob(32), 1 FROM counted`),
  );
  const before = readContents(original);
  const began = performance.now();
  const whole = join(temporaryFolder(), 'leads.db');
  copyFileSync(original, whole);
  await once(openElsewhere(whole), 'exit');
  const duration = performance.now() - began;
  expect([readVersion(whole), readContents(whole)]).toEqual([9, before]);

  let path = whole;
  const found = new Set<unknown>();
  for (let kill = 0; kill < KILLS; kill += 1) {
    if (readVersion(path) === 9) {
      path = join(temporaryFolder(), 'leads.db');
      copyFileSync(original, path);
    }
    const opening = openElsewhere(path);
    const ended = once(opening, 'exit');
    await sleep((duration * (kill + 1)) / KILLS);
    opening.kill('SIGKILL');
    await ended;
    const version = readVersion(path);
    found.add(version);
    expect([8, 9]).toContain(version);
    expect(readContents(path)).toBe(before);
    const copy = `${path}.before-2.0`;
    if (version === 9 || existsSync(copy)) expect([readVersion(copy), readContents(copy)]).toEqual([8, before]);
  }
  expect(found).toContain(8);

  openDatabase(path).database.close();
  expect([readVersion(path), readContents(path)]).toEqual([9, before]);
});
