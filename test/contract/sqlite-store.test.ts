import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Lead } from '../../src/domain/lead.ts';
import { StoreUnavailable, type UnreadableRecord } from '../../src/store/port/faults.ts';
import { sqliteApiKeys } from '../../src/store/sqlite/api-keys.ts';
import { connectionTo, MAX_STORED_REQUESTS } from '../../src/store/sqlite/connection.ts';
import { sqliteDirectory } from '../../src/store/sqlite/directory.ts';
import { GroupCommit, sharedTransaction } from '../../src/store/sqlite/group-commit.ts';
import { sqliteLeadReads } from '../../src/store/sqlite/lead-reads.ts';
import { sqliteLeadWrites } from '../../src/store/sqlite/leads.ts';
import { openDatabase } from '../../src/store/sqlite/open-database.ts';
import { sqliteRetention } from '../../src/store/sqlite/retention.ts';
import { schemaVersion } from '../../src/store/sqlite/schema.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../src/store/store.ts';
import { countLeads, everyStudioWithLeads } from '../../src/usecases/count-leads.ts';
import { aConsumer, aLead, aMember, aStudio, BY, keysFor, NOW, STUDIO_ID, times } from '../support/builders.ts';
import { ID_BYTES, STUDIO_NUMBER, setColumn, toIdText } from '../support/raw-sqlite.ts';
import { temporaryFolder } from '../tools/processes.ts';
import type { Damage, OpenedStore } from './opened-store.ts';
import { created, moveLead } from './store-actions.ts';
import { storeContract } from './store-contract.ts';

const OF_LEAD = `studio_number = ${STUDIO_NUMBER} AND id = ${ID_BYTES}`;

/** The table of each kind of record, and the condition that finds one by the ids of its studio and itself. */
const TABLES = {
  lead: ['leads', OF_LEAD],
  creation: ['leads', OF_LEAD],
  original: ['leads', OF_LEAD],
  enquiries: ['leads', OF_LEAD],
  'uniqueness key': ['leads', OF_LEAD],
  'pending change': ['leads', OF_LEAD],
  'part of a pending change': ['leads', OF_LEAD],
  'pending change of 1.0': ['leads', OF_LEAD],
  key: ['api_keys', 'studio_id = ? AND id = ?'],
  studio: ['studios', 'id = ? AND id = ?'],
  region: ['studios', 'id = ? AND id = ?'],
  member: ['members', 'studio_id = ? AND id = ?'],
  source: ['lead_sources', 'studio_id = ? AND id = ?'],
  event: ['audit_events', 'studio_id = ? AND studio_id = ?'],
  consumer: ['consumers', 'name <> ? AND name = ?'],
  delivery: ['deliveries', `lead = (SELECT number FROM leads WHERE ${OF_LEAD})`],
  epoch: ['database_epoch', '? <> ?'],
  request: ['logged_requests', 'studio_id = ? AND id = ?'],
  'lead with events': ['audit_events', 'studio_id = ? AND lead_id = ?'],
  'key with events': ['audit_events', 'studio_id = ? AND api_key_id = ?'],
} as const;

/** Not a safe integer in JavaScript. */
const FAR = 2n ** 63n - 1n;

/** One value of each kind that a column can hold and that its reader distinguishes. */
const DAMAGES: readonly Damage[] = (
  [
    ['lead', 'stage', 'qualified'],
    ['lead', 'contact_type', 'fax'],
    ['lead', 'created_at', FAR],
    ['lead', 'created_at', 8.64e15],
    ['lead', 'updated_at', -FAR],
    ...['""', `"${'x'.repeat(1_000_000)}"`, '5', null].map((value) => ['lead', 'display_name', value] as const),
    ['lead', 'note', `"${'x'.repeat(10_000)}"`],
    ['lead', 'note', '[]'],
    ['lead', 'source_id', 'website'],
    ['creation', 'fingerprint', ''],
    ['creation', 'fingerprint_version', 99],
    ['original', 'original', '{'],
    ['original', 'original', '{"displayName":"Ada","sourceId":"website","note":null}'],
    ...[
      { kept: 'x', keys: {} },
      { kept: [null, { time: 'soon', displayName: 'Ada', sourceId: null, note: 'x' }], keys: [5] },
      { kept: [{ time: NOW, displayName: 'Ada', sourceId: 'website', note: 'x' }] },
    ].map((enquiries) => {
      const original = { displayName: 'Ada', sourceId: null, note: null, enquiries };
      return ['enquiries', 'original', JSON.stringify(original)] as const;
    }),
    ['uniqueness key', 'contact_keys', '['],
    ['uniqueness key', 'rule_region', 'XX'],
    ['uniqueness key', 'rule_version', 2],
    ['pending change', 'revision', FAR],
    ['pending change', 'changed_since', -FAR],
    ['pending change', 'change_kinds', '['],
    ['part of a pending change', 'change_kinds', '{"updated":"x","sold":5}'],
    ['pending change of 1.0', 'changed_since', 0],
    ['key', 'name', 'x'.repeat(1_000_000)],
    ['key', 'scopes', `leads.export${' leads.read'.repeat(500_000)}`],
    ['key', 'member_id', 'a.b'],
    ['key', 'secret_hint', ''],
    ['key', 'created_at', FAR],
    ['key', 'expires_at', FAR],
    ['key', 'revoked_at', FAR],
    ['key', 'last_used_at', -FAR],
    ['studio', 'status', 'closed'],
    ['studio', 'region_code', 'XX'],
    ['studio', 'keep_enquiries', 5],
    ['studio', 'retention', '{"days":5,"since":1}'],
    ['studio', 'retention', '{'],
    ['region', 'former_regions', 'zzz'],
    ['region', 'former_regions', '["XX"]'],
    ['member', 'role', 'boss'],
    ['source', 'name', ''],
    ['source', 'enabled', 5],
    ['event', 'action', 'studio-sold'],
    ['event', 'time', FAR],
    ['event', 'member_id', 'x'.repeat(1_000_000)],
    ['event', 'from_value', 'x'.repeat(1_000_000)],
    ['consumer', 'studio_ids', 'zzz'],
    ['consumer', 'studio_ids', '["a.b"]'],
    ['consumer', 'includes_tests', 5],
    ['consumer', 'start', 'soon'],
    ['consumer', 'created_at', FAR],
    ['consumer', 'backfills', '[{"studioId":5}]'],
    ['delivery', 'kinds', 'zzz'],
    ['delivery', 'kinds', '{"updated":"x","sold":5}'],
    ...['{', '{"operation":"sell"}', `{"code":"${'x'.repeat(1_000_000)}"}`].map(
      (value) => ['request', 'request', value] as const,
    ),
    ['epoch', 'epoch', FAR],
    ['epoch', 'epoch', -1],
    ['epoch', 'restored_to', -FAR],
    ['epoch', 'restored_to', null],
  ] as const
).map(([kind, field, value]) => ({ kind, field, value }));

async function openContractStore(): Promise<OpenedStore> {
  const reported: UnreadableRecord[] = [];
  const path = join(temporaryFolder(), 'leads.db');
  const stores: Store[] = [];
  const open = () => {
    const store = openSqliteStore(path, { report: (record) => reported.push(record) });
    stores.push(store);
    return store;
  };
  const store = open();
  /** Writes directly to the database. */
  function inTransaction(write: (database: DatabaseSync) => void): void {
    const database = new DatabaseSync(path, { timeout: 100_000 });
    database.exec('BEGIN IMMEDIATE');
    write(database);
    database.exec('COMMIT');
    database.close();
  }
  return {
    store,
    async reopen() {
      await store.close();
      return open();
    },
    another: async () => open(),
    reported,
    async damage({ kind, field, value }, ...records) {
      const [table, condition] = TABLES[kind];
      inTransaction((database) => {
        const change = database.prepare(`UPDATE ${table} SET ${setColumn(field)} WHERE ${condition}`);
        for (const record of records) change.run(value as SQLInputValue, record.studioId, record.id);
      });
    },
    databaseUrl: `sqlite:${path}`,
    async fill({ members = [], sources = [], keys = [], events = [] }) {
      inTransaction((database) => {
        const insertKey = database.prepare(`
          INSERT INTO api_keys (
            studio_id, id, member_id, name, scopes, created_at, expires_at, revoked_at, secret_sha256, secret_hint, slot
          ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
        for (const { studioId, id, memberId, name, scopes, secretSha256, secretHint, ...key } of keys) {
          const times = [key.createdAt, key.expiresAt, key.revokedAt].map((time) => time?.getTime() ?? null);
          insertKey.run(studioId, id, memberId, name, scopes.join(' '), ...times, secretSha256, secretHint, id);
        }
        const insertEvent = database.prepare(
          'INSERT INTO audit_events (studio_id, api_key_id, action, member_id, time) VALUES (?, ?, ?, ?, ?)',
        );
        for (const { studioId, apiKeyId, action, memberId, time } of events) {
          insertEvent.run(studioId, apiKeyId, action, memberId, time.getTime());
        }
        const insertMember = database.prepare('INSERT INTO members (studio_id, id, role) VALUES (?, ?, ?)');
        const insertSource = database.prepare(
          'INSERT INTO lead_sources (studio_id, id, name, enabled) VALUES (?, ?, ?, ?)',
        );
        for (const { studioId, id, role } of members) insertMember.run(studioId, id, role);
        for (const { studioId, id, name, enabled } of sources) insertSource.run(studioId, id, name, Number(enabled));
      });
    },
    async makeLeads(...leads) {
      await Promise.all(leads.map((lead) => created(store, lead)));
    },
    async makeStudios(...ids) {
      inTransaction((database) => {
        const insert = database.prepare("INSERT INTO studios (id, status) VALUES (?, 'active')");
        for (const id of ids) insert.run(id);
      });
    },
    async dispose() {
      for (const each of stores) await each.close();
    },
  };
}

// @proves leads-1
storeContract('SQLite', DAMAGES, openContractStore, 'whole');

describe('SQLite', () => {
  let folder: string;
  let path: string;

  beforeEach(() => {
    folder = temporaryFolder();
    path = join(folder, 'leads.db');
  });

  function openStore(): Store {
    const store = openSqliteStore(path);
    onTestFinished(() => store.close());
    return store;
  }

  /** Opens a connection configured like the store's. */
  function connect(): DatabaseSync {
    const { database } = openDatabase(path);
    onTestFinished(() => {
      if (database.isOpen) database.close();
    });
    return database;
  }

  const create = (store: Pick<Store, 'createLead'>, lead: Lead) => store.createLead(lead, keysFor(lead));
  const idsIn = (database: DatabaseSync) =>
    database
      .prepare(`SELECT ${toIdText('id')} AS id FROM leads ORDER BY leads.id`)
      .all()
      .map(({ id }) => id);

  /** Opens the same files in several processes at the same moments; returns the output of each process. */
  async function openInProcesses(processes: number, files: number): Promise<string[]> {
    const script = `
      const { openSqliteStore } = await import(${JSON.stringify(import.meta.resolve('../../src/store/sqlite/sqlite-store.ts'))});
      process.stdout.write('ready\\n');
      const start = Number(await new Promise((go) => process.stdin.once('data', go)));
      process.stdin.destroy();
      for (let file = 0; file < ${files}; file += 1) {
        while (Date.now() < start + file * 20);
        openSqliteStore(${JSON.stringify(path)} + '-' + file);
      }
      console.log('opened');`;
    const all = times(processes, () => {
      const child = spawn(process.execPath, ['--input-type=module', '--eval', script]);
      return { child, lines: createInterface(child.stdout), errors: text(child.stderr) };
    });
    await Promise.all(all.map(({ lines }) => once(lines, 'line')));
    const start = Date.now() + 100;
    for (const { child } of all) child.stdin.write(`${start}\n`);
    return Promise.all(
      all.map(async ({ lines, errors }) => (await Array.fromAsync(lines)).join('\n') || (await errors)),
    );
  }

  describe('the write-ahead log', () => {
    const createOneByOne = async (store: Store, count: number) => {
      for (const lead of times(count, () => aLead({ note: 'x'.repeat(2000) }))) await create(store, lead);
    };

    test('closing the store removes the write-ahead log and every handle of the file', async () => {
      const store = openStore();
      await createOneByOne(store, 200);
      await store.close();

      expect(readdirSync(folder)).toEqual(['leads.db']);
      const reader = new DatabaseSync(path, { timeout: 100_000 });
      onTestFinished(() => reader.close());
      expect(idsIn(reader)).toHaveLength(200);
    });
  });

  describe('opening', () => {
    test('every commit waits for the disk, foreign keys are enforced, and a long log is truncated', () => {
      const database = connect();
      // 2 is FULL.
      const settings = { journal_mode: 'wal', synchronous: 2, foreign_keys: 1, wal_autocheckpoint: 16_384 };
      for (const [name, value] of Object.entries(settings)) {
        expect(database.prepare(`PRAGMA ${name}`).get()).toEqual({ [name]: value });
      }
    });

    // @proves secrets-14 sqlite-8
    test('the files are accessible only to their owner, even in a folder open to all', async () => {
      chmodSync(folder, 0o755);
      const store = openStore();
      await create(store, aLead());
      openDatabase(join(folder, 'new', 'leads.db')).database.close();
      expect(statSync(join(folder, 'new')).mode & 0o777).toBe(0o700);
      rmSync(join(folder, 'new'), { recursive: true });

      const modes = readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode & 0o777]);
      expect(Object.fromEntries(modes)).toEqual({ 'leads.db': 0o600, 'leads.db-shm': 0o600, 'leads.db-wal': 0o600 });
    });

    test('a database of a newer release is refused and stays unchanged', () => {
      const database = connect();
      const newer = schemaVersion(database) + 1;
      database.exec(`PRAGMA user_version = ${newer}`);
      database.close();

      expect(() => openSqliteStore(path)).toThrow(/newer release/);

      const raw = new DatabaseSync(path, { timeout: 100_000 });
      onTestFinished(() => raw.close());
      expect(schemaVersion(raw)).toBe(newer);
    });

    // @proves sqlite-1
    test('two processes that start on one new file both open it', async () => {
      // Sixty files, because both also succeed if they do not overlap.
      expect(await openInProcesses(2, 60)).toEqual(['opened', 'opened']);
    });
  });

  describe('writes that share a transaction', () => {
    test('a write that fails halfway is rolled back alone within its shared transaction', async () => {
      const database = connect();
      const commits = new GroupCommit(database);
      const insert = (id: string) =>
        database.prepare('INSERT INTO studios (id, status) VALUES (?, ?)').run(id, 'active');

      const outcomes = await Promise.allSettled([
        commits.write(() => insert('before')),
        commits.write(() => {
          insert('half');
          throw new Error('halfway');
        }),
        commits.write(() => insert('after')),
      ]);

      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect(connect().prepare('SELECT id FROM studios ORDER BY id').all()).toEqual([
        { id: 'after' },
        { id: 'before' },
      ]);
    });

    // @proves sqlite-6
    test('all writes of a transaction fail and none is stored when its commit fails', async () => {
      const database = connect();
      const commits = new GroupCommit(database);
      const store = sqliteLeadWrites(connectionTo(database, sharedTransaction(database), commits));
      const leads = times(3, () => aLead());

      const writes = leads.map((lead) => create(store, lead));
      // Breaks a reference that is checked only when the transaction ends.
      const spoiler = commits.write(() => {
        database.exec(`
          PRAGMA defer_foreign_keys = ON;
          INSERT INTO members (studio_id, id, role) VALUES ('nowhere', 'member-1', 'staff')`);
      });

      const outcomes = await Promise.allSettled([...writes, spoiler]);
      for (const outcome of outcomes) {
        expect(outcome).toEqual({ status: 'rejected', reason: expect.any(StoreUnavailable) });
      }
      expect(idsIn(connect())).toEqual([]);
      // The calls can be retried.
      for (const lead of leads) expect(await create(store, lead)).toMatchObject({ kind: 'created' });
    });
  });

  describe('reads that share a transaction', () => {
    // @proves sqlite-13
    test('reads that share a transaction see earlier writes of another process', async () => {
      const [store, another] = [openStore(), openStore()];
      const lead = aLead();
      await create(another, lead);
      for (const stage of ['contacted', 'trial_booked', 'won'] as const) {
        expect(await store.findLead(STUDIO_ID, lead.id)).not.toMatchObject({ stage });
        await moveLead(another, lead, stage);
        const [found, page] = await Promise.all([
          store.findLead(STUDIO_ID, lead.id),
          store.listLeads(STUDIO_ID, null, 1),
        ]);
        expect([found, ...page.records]).toMatchObject([{ stage }, { stage }]);
      }
    });
  });

  describe('a write that cannot be made', () => {
    test('a write that cannot be made fails the check until writes succeed again', async () => {
      const store = openStore();
      await create(store, aLead());
      await store.check();
      const other = connect();

      other.exec('BEGIN IMMEDIATE');
      await expect(create(store, aLead())).rejects.toBeInstanceOf(StoreUnavailable);
      for (const _ of times(2, () => 0)) {
        await expect(store.check()).rejects.toMatchObject({ cause: { message: 'database is locked' } });
      }

      other.exec('ROLLBACK');
      // The check succeeds although no write has happened in between.
      await store.check();
    });

    test('writes on a full disk fail as unavailable, and earlier writes stay', async () => {
      const database = connect();
      const store = sqliteLeadWrites(connectionTo(database, sharedTransaction(database), new GroupCommit(database)));
      const first = aLead();
      await create(store, first);
      const { page_count: pages } = database.prepare('PRAGMA page_count').get() as { page_count: number };
      database.exec(`PRAGMA max_page_count = ${pages}`);
      const large = times(4, () => aLead({ note: 'x'.repeat(10_000) }));

      const outcomes = await Promise.allSettled(large.map((lead) => create(store, lead)));

      for (const outcome of outcomes) {
        expect(outcome).toEqual({ status: 'rejected', reason: expect.any(StoreUnavailable) });
      }
      expect(idsIn(connect())).toEqual([first.id]);
      database.exec(`PRAGMA max_page_count = ${pages + 1000}`);
      for (const lead of large) expect(await create(store, lead)).toMatchObject({ kind: 'created' });
    });
  });

  // @proves bounds-44
  test('consumers that ask at once share the distribution, one part to a commit', async () => {
    const commits: number[] = [];
    const observer = ({ size }: { readonly size: number }) => {
      commits.push(size);
      return () => {};
    };
    const observed: Store = openSqliteStore(join(temporaryFolder(), 'leads.db'), { observer });
    onTestFinished(() => observed.close());
    await observed.putStudio(aStudio(), BY);
    const named = times(8, (index) => index + 1);
    for (const number of named) await observed.createConsumer(aConsumer({ name: `copy-${number}` }), BY);
    await Promise.all(times(1200, () => created(observed, aLead())));
    commits.length = 0;
    const lists = await Promise.all(named.map((number) => observed.listDeliveries(number, 10)));
    expect(lists.map((list) => list?.changes.length)).toEqual(named.map(() => 10));
    expect([...new Set(commits)]).toEqual([1]);
    expect(commits.length).toBeLessThanOrEqual(3);
  });

  test('stores the identities of the newest hundred thousand requests', async () => {
    const store = openSqliteStore(path);
    onTestFinished(() => store.close());
    await store.putStudio(aStudio(), BY);
    connect().exec(`
      WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < ${MAX_STORED_REQUESTS})
      INSERT INTO applied_requests (number, id) SELECT number, randomblob(16) FROM numbers`);

    await store.putMember(aMember(), { ...BY, requestId: randomUUID() });

    const stored = connect().prepare('SELECT count(*) AS count, min(number) AS oldest FROM applied_requests').get();
    expect(stored).toEqual({ count: 100_000, oldest: 2 });
  });

  // @proves leads-35 bounds-96 bounds-97
  test('counts the newest hundred thousand leads, and older stages up to a bound', async () => {
    const store = openSqliteStore(path);
    onTestFinished(() => store.close());
    await store.putStudio(aStudio(), BY);
    await create(store, aLead({ id: 'ffffffff-ffff-7fff-bfff-ffffffffffff', createdAt: NOW }));
    // The oldest 5,000 are won, and the next 15,000 lost.
    connect().exec(`
      WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 120000)
      INSERT INTO leads (studio_number, id, display_name, contact_type, contact_value, stage, created_at, updated_at,
        contact_keys, rule_version, idempotency_key, fingerprint, fingerprint_version)
      SELECT 1, unhex(printf('%012x', 1700000000000 + number) || '70008000000000000000'), '"Ada"', 'email', 'a@b',
        iif(number <= 5000, 'won', iif(number <= 20000, 'lost', 'new')), 1700000000000 + number, 1700000000000 + number,
        x'', 1, randomblob(16), x'', 1 FROM numbers`);

    await store.putStudio(aStudio({ id: 'studio-2' }), BY);
    await create(store, aLead({ studioId: 'studio-2', createdAt: NOW }));
    const all = (await Array.fromAsync(everyStudioWithLeads({ store }))).map(({ studio, leads }) => [studio.id, leads]);
    expect(all).toEqual([
      [STUDIO_ID, 120_001],
      ['studio-2', 1],
    ]);

    const { byStage, bySource, completeSince } = await countLeads({ store }, { studioId: STUDIO_ID });
    const countRows = (wanted: string) => byStage.find(({ of }) => of === wanted);

    expect(bySource).toEqual([{ of: null, count: 100_000, isLowerBound: true }]);
    expect(completeSince).toEqual(new Date(1_700_000_020_003));
    expect(countRows('won')).toEqual({ of: 'won', count: 5000, isLowerBound: false });
    expect(countRows('lost')).toEqual({ of: 'lost', count: 10_000, isLowerBound: true });
    expect(countRows('new')).toEqual({ of: 'new', count: 100_000, isLowerBound: true });
    const created = { start: new Date(1_700_000_000_001), end: new Date(1_700_000_005_001) };
    const filter = { stages: [], sourceIds: [], created, updated: { start: null, end: null } };
    expect(await countLeads({ store }, { studioId: STUDIO_ID, filter })).toMatchObject({
      bySource: [{ count: 5000, isLowerBound: false }],
      completeSince: null,
    });

    // Exactly as many as a count examines.
    connect().exec('DELETE FROM leads WHERE created_at < 1700000020002');
    const exact = await countLeads({ store }, { studioId: STUDIO_ID });
    expect(exact).toMatchObject({ bySource: [{ count: 100_000, isLowerBound: false }], completeSince: null });
    expect(exact.byStage.filter(({ isLowerBound }) => isLowerBound)).toEqual([]);
  });

  // The transaction ends outside of any call, so an error would end the process.
  test('ending the transaction of reads throws no error even if the file is damaged', () => {
    const path = join(temporaryFolder(), 'leads.db');
    const { database } = openDatabase(path);
    onTestFinished(() => database.close());
    // Each read reads the file.
    database.exec(
      "PRAGMA cache_size = 1; CREATE TABLE filled (text); INSERT INTO filled VALUES (printf('%.*c', 9e4, 'x'))",
    );
    const read = database.prepare('SELECT count(*) FROM filled WHERE text > ?');
    const reads = sharedTransaction(database);
    reads.begin();
    read.get('');
    reads.end();
    for (const file of [path, `${path}-wal`]) writeFileSync(file, randomBytes(200_000), { flag: 'r+' });

    reads.begin();
    expect(() => read.get('')).toThrow(/malformed|not a database/);
    expect(() => reads.end()).not.toThrow();
    expect(database.isTransaction).toBe(false);
  });

  test('opening a file does not read all of its leads', () => {
    const path = join(temporaryFolder(), 'leads.db');
    openDatabase(path).database.close();
    const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare');
    const { database } = openDatabase(path);
    const queries = prepare.mock.calls.map(([sql]) => sql).filter((sql) => sql.startsWith('SELECT'));
    prepare.mockRestore();
    const steps = queries.flatMap((sql) => database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all());
    database.close();
    expect(steps.length).toBeGreaterThan(0);
    expect(steps.filter(({ detail }) => /SCAN leads/.test(String(detail)))).toEqual([]);
  });

  // @proves leads-34
  test('no SQLite query scans a whole table or sorts', () => {
    const database = connect();
    const queries: string[] = [];
    const prepare = database.prepare.bind(database);
    database.prepare = (sql) => {
      queries.push(sql);
      return prepare(sql);
    };
    const connection = connectionTo(database, sharedTransaction(database), new GroupCommit(database));
    sqliteLeadWrites(connection);
    sqliteLeadReads(connection);
    sqliteApiKeys(connection);
    sqliteDirectory(connection);
    sqliteRetention(connection);

    const plans = queries.map((sql) => ({
      sql,
      steps: prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => String(detail)),
    }));

    expect(plans.filter(({ steps }) => steps.some((step) => step.startsWith('SEARCH'))).length).toBeGreaterThan(10);
    // Merges ranges of an index in their order, as far as a page or a count needs them.
    const merging = ['MERGE (UNION ALL)', 'LEFT', 'RIGHT'];
    // Scans the values of a call, or the consumers, of which there are at most sixteen.
    const isOfFew = (step: string) => /^(?:LIST SUBQUERY|SCAN json_each|SCAN consumers) /.test(step);
    const isBounded = (step: string) =>
      /^(?:SEARCH|(?:CORRELATED )?SCALAR SUBQUERY|USING ROWID SEARCH|CO-ROUTINE) /.test(step) ||
      /^SCAN (?:page|\(subquery-2\))$/.test(step) ||
      merging.includes(step) ||
      isOfFew(step);
    expect(plans.filter(({ steps }) => !steps.every(isBounded))).toEqual([]);
    const listing = plans.find(({ sql }) => sql.includes('ORDER BY id DESC LIMIT'));
    const range = '(studio_number=? AND id>? AND id<?)';
    expect(listing?.steps[0]).toBe(`SEARCH leads USING INDEX sqlite_autoindex_leads_1 ${range}`);
    const byUpdate = plans.filter(({ sql }) => sql.includes('UNION ALL'));
    const changes = 'leads_by_stage (studio_number=? AND stage=? AND updated_at>? AND updated_at<?)';
    expect(byUpdate.map(({ steps }) => steps.filter((step) => step.endsWith(changes)).length)).toEqual([6, 6]);
  });
});
