import { randomBytes, randomUUID } from 'node:crypto';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { errorSummary } from '../../common/error-summary.ts';
import { newId } from '../../src/domain/new-id.ts';
import { examineDatabase, openStore } from '../../src/store/open-store.ts';
import { openInSteps } from '../../src/store/sqlite/open-database.ts';
import { hashesIn, hashText } from '../../src/store/sqlite/stored-ids.ts';
import type { UnreadableRecord } from '../../src/store/store.ts';
import { createLead } from '../../src/usecases/create-lead.ts';
import { aStudio, BY, times } from '../support/builders.ts';
import { openClaimsIn } from '../support/claims.ts';
import { addressOf, run, temporaryFolder } from '../support/processes.ts';
import { idTextOf } from '../support/raw-sqlite.ts';

const fileOf = (name: string) => join(import.meta.dirname, name);

/** The data in the file of schema 3, and what its release returned. */
const made = JSON.parse(readFileSync(fileOf('sqlite-schema-3.json'), 'utf8'));
const asJson = (value: unknown) => JSON.parse(JSON.stringify(value));

let path: string;
beforeEach(() => {
  path = join(temporaryFolder(), 'leads.db');
  copyFileSync(fileOf('sqlite-schema-3.db'), path);
});

async function open() {
  const reported: UnreadableRecord[] = [];
  const opening = openStore(`sqlite:${path}`, undefined, (record) => reported.push(record));
  const store = await opening.catch((error) => expect.fail(errorSummary(error)));
  onTestFinished(() => store.close());
  return { store, reported };
}

function direct() {
  const database = new DatabaseSync(path, { timeout: 5000 });
  onTestFinished(() => {
    if (database.isOpen) database.close();
  });
  return database;
}

describe('a SQLite file of schema 3', () => {
  test('returns the same leads, replays, lists, claims, renewals, events and keys', async () => {
    const { store } = await open();
    const { answers } = made;
    // That release did not record the calling program.
    const eventsOf = (subject: string) => answers.events[subject].map((event: object) => ({ ...event, caller: null }));

    for (const { studioId, id, idempotencyKey } of made.leads) {
      expect(asJson(await store.findLead(studioId, id))).toEqual(answers.leads[id]);
      expect(asJson(await store.findLeadByIdempotencyKey(studioId, idempotencyKey))).toEqual(
        answers.byKey[idempotencyKey],
      );
      expect(asJson(await store.listAuditEvents(studioId, id))).toEqual(eventsOf(id));
    }
    for (const studioId of ['berlin', 'moves', 'two']) {
      const { records } = await store.listLeads(studioId, null, 100);
      expect(records.map(({ id }) => id)).toEqual(answers.lists[studioId]);
      expect(asJson((await openClaimsIn(store, studioId)).map(({ isOpen, ...lead }) => lead))).toEqual(
        answers.open[studioId],
      );
      expect(asJson(await store.listAuditEvents(studioId, null))).toEqual(eventsOf(studioId));
    }
    // All claims are renewed so that closed leads can be found; renewals that were in progress continue.
    const renewals = await store.listClaimRenewals();
    const before = answers.renewals.map(({ studio, ...renewal }: { studio: object }) => ({
      ...renewal,
      studio: { ...studio, quotaLimit: null },
    }));
    expect(asJson(renewals)).toEqual(expect.arrayContaining(before));
    expect(renewals.length).toBeGreaterThan(answers.renewals.length);
    const credential = await store.findCredential(Buffer.from(made.keyHash, 'hex'), made.sourceId);
    expect(asJson(credential)).toMatchObject({
      key: { id: answers.credential.keyId },
      studio: { ...answers.credential.studio, formerRules: [{ version: 2, region: 'DE' }] },
      issuerRole: answers.credential.issuerRole,
      source: answers.credential.source,
    });
  });

  test('replays every creation, and blocks the contacts of open leads only', async () => {
    const { store } = await open();
    const creating = (lead: object, idempotencyKey: string) =>
      createLead({ store, newId }, { ...(lead as (typeof made.leads)[number]), idempotencyKey }).catch(
        ({ reason }) => reason,
      );

    for (const lead of made.leads) {
      const answer = await creating(lead, lead.idempotencyKey);
      expect(answer).toMatchObject({ replayed: true, lead: { id: lead.id, stage: 'new' } });
    }
    for (const lead of made.leads) {
      const { stage } = made.answers.leads[lead.id];
      const answer = await creating(lead, newId());
      if (stage === 'won' || stage === 'lost') expect(answer).toMatchObject({ replayed: false });
      else expect(answer).toBe('LEAD_ALREADY_OPEN');
    }
  });

  test('distinguishes its leads from UUIDs with trailing bytes', async () => {
    const [{ studioId, id }] = made.leads;
    direct()
      .prepare(`
        INSERT INTO leads (
          studio_id, id, display_name, contact_type, contact_value, stage, created_at, updated_at, contact_keys,
          idempotency_key, fingerprint, fingerprint_version
        ) SELECT studio_id, id || x'0078', display_name, contact_type, contact_value, stage, created_at, updated_at, '',
          idempotency_key || x'0078', fingerprint, fingerprint_version
        FROM leads WHERE studio_id = ? AND id = ?`)
      .run(studioId, id);

    const { store } = await open();

    expect(asJson(await store.findLead(studioId, id))).toEqual(made.answers.leads[id]);
    await expect(store.check()).resolves.toBeUndefined();
  });

  test('does not change additional tables that refer to leads, or broken views', async () => {
    const database = direct();
    database.exec(`
      CREATE TABLE own (
        studio_id TEXT, lead_id TEXT, FOREIGN KEY (studio_id, lead_id) REFERENCES leads (studio_id, id) ON DELETE CASCADE
      );
      INSERT INTO own SELECT studio_id, id FROM leads;
      CREATE VIEW broken AS SELECT * FROM nowhere;
      CREATE VIEW names AS SELECT display_name FROM leads`);
    const { count } = database.prepare('SELECT count(*) AS count FROM own').get() as { count: number };
    database.close();

    const { store } = await open();

    expect(count).toBeGreaterThan(0);
    expect(direct().prepare('SELECT count(*) AS count FROM own').get()).toEqual({ count });
    expect(direct().prepare('SELECT count(*) AS count FROM names').get()).toEqual({ count });
    await expect(store.check()).resolves.toBeUndefined();
  });

  test('never reuses the number of a studio, even when it was deleted', async () => {
    const { store } = await open();
    const database = direct();
    database.exec('DELETE FROM studio_numbers WHERE number = (SELECT max(number) FROM studio_numbers)');

    const { studioId, ...lead } = made.leads[0];
    await store.putStudio(aStudio({ id: 'another' }), BY);
    const command = { ...lead, studioId: 'another', idempotencyKey: newId(), sourceId: undefined };
    await expect(createLead({ store, newId }, command)).resolves.toMatchObject({ replayed: false });

    expect((await store.listLeads('another', null, 100)).records).toHaveLength(1);
  });

  test('keeps invalid ids, distinct from each other and from valid ones', async () => {
    const { store, reported } = await open();
    const { ids, readable, idempotencyKey, keys, withOddKey, withOddSource, withOddClaims, withOddTime } = made.odd;

    const { records } = await store.listLeads('odd', null, 100);
    expect(records.map(({ id }) => id)).toEqual([readable, ...withOddKey, withOddClaims].toSorted().toReversed());
    const unreadable = ids.length + [withOddSource, withOddTime].length;
    expect(reported.map(({ field }) => field).toSorted()).toEqual([
      'createdAt',
      ...times(ids.length, () => 'id'),
      'sourceId',
    ]);
    const { leads, differentIds, differentKeys } = direct()
      .prepare(
        'SELECT count(*) AS leads, count(DISTINCT id) AS differentIds, count(DISTINCT idempotency_key) AS differentKeys FROM leads JOIN studio_numbers ON studio_numbers.number = studio_number WHERE studio_id = ?',
      )
      .get('odd') as Record<string, number>;
    expect([leads, differentIds, differentKeys]).toEqual(times(3, () => records.length + unreadable));
    expect(await store.findLeadByIdempotencyKey('odd', idempotencyKey)).toMatchObject({ lead: { id: readable } });
    expect(keys).toHaveLength(withOddKey.length);
    const text = direct().prepare('SELECT count(*) AS leads FROM leads WHERE id = CAST(? AS BLOB)');
    expect(text.get('lead-1')).toEqual({ leads: 1 });
    // They keep the claims of their contacts, like any open lead.
    const { count } = direct()
      .prepare('SELECT count(*) AS count FROM contact_claims JOIN leads ON lead_number = number WHERE length(id) <> 16')
      .get() as { count: number };
    expect(count).toBe(ids.length);
  });

  test('without its index of keys and with duplicate keys is converted, and the check names the duplicates', async () => {
    const [first, second] = made.leads;
    const database = direct();
    database.exec('DROP INDEX leads_by_idempotency_key');
    database.prepare('UPDATE leads SET idempotency_key = ? WHERE id = ?').run(first.idempotencyKey, second.id);
    database.close();

    const { store } = await open();

    await expect(store.check()).rejects.toThrow(`berlin/${first.id} = berlin/${second.id}`);
    expect(await store.findLead('berlin', second.id)).not.toBeNull();
  });
});

/** More leads than fit into a few transactions. */
const MANY = 50_000;

/** The contents of the tables, lead by lead, in a form that is equal for both schemas. */
type Contents = readonly (readonly unknown[])[];

/** How an earlier schema stores leads. */
interface Former {
  readonly file: string;
  /** The columns for claims, and their values for a lead with a claim and for one without, in SQL. */
  readonly columns: string;
  readonly open: string;
  readonly closed: string;
  /** The claims of a lead, the version and region of their rule, and the stored claim, in SQL. */
  readonly claims: string;
  readonly hasTableOfClaims: boolean;
  /** The number of transactions that convert the leads and their claims. */
  readonly transactions: number;
  /** Writes of that release, none of which may succeed once the conversion has started. */
  readonly writes: readonly string[];
}

const FORMER: Readonly<Record<string, Former>> = {
  'release 1.0': {
    file: 'sqlite-1.0.db',
    columns: 'open_contact_key',
    open: "'open:' || :contactKey",
    closed: "'closed:' || :id",
    claims: `
      iif(open_contact_key LIKE 'open:%', substr(open_contact_key, 6), '') AS claimed, 1 AS rule_version, NULL AS rule_region,
      iif(open_contact_key LIKE 'open:%', substr(open_contact_key, 6), NULL) AS claim`,
    hasTableOfClaims: false,
    transactions: 4,
    writes: [
      `INSERT INTO leads (studio_id, id, display_name, contact_type, contact_value, stage, created_at, updated_at,
        open_contact_key, idempotency_key, fingerprint, fingerprint_version)
        VALUES ('many-0', 'x', 'x', 'email', 'x', 'new', 0, 0, 'open:x', 'x', 'x', 1)`,
      "UPDATE leads SET stage = 'won', open_contact_key = 'closed:x' WHERE studio_id = 'many-0'",
      'CREATE UNIQUE INDEX leads_by_idempotency_key ON leads (studio_id, idempotency_key)',
    ],
  },
  'schema 3': {
    file: 'sqlite-schema-3.db',
    columns: 'rule_version, rule_region, contact_keys',
    open: "2, 'DE', :contactKey",
    closed: "2, 'DE', ''",
    claims: `
      contact_keys, rule_version, rule_region,
      (SELECT group_concat(contact_key, ' ' ORDER BY contact_key) FROM contact_claims
        WHERE contact_claims.studio_id = leads.studio_id AND lead_id = id AND contact_claims.contact_key IN (contact_keys))`,
    hasTableOfClaims: true,
    transactions: 6,
    writes: [
      `INSERT INTO leads (studio_id, id, display_name, contact_type, contact_value, stage, created_at, updated_at, contact_keys,
        idempotency_key, fingerprint, fingerprint_version) VALUES ('many-0', 'x', 'x', 'email', 'x', 'new', 0, 0, '', 'x', 'x', 1)`,
      "UPDATE leads SET stage = 'won' WHERE studio_id = 'many-0'",
      "INSERT INTO contact_claims (studio_id, contact_key, lead_id) VALUES ('many-0', 'x', 'x')",
      "DELETE FROM contact_claims WHERE studio_id = 'many-0'",
      'CREATE UNIQUE INDEX leads_by_idempotency_key ON leads (studio_id, idempotency_key)',
    ],
  },
};

function formerContents({ claims }: Former): Contents {
  const database = direct();
  const rows = database
    .prepare(`
      SELECT studio_id, id, display_name, contact_type, contact_value, source_id, note, stage, created_at, updated_at,
        idempotency_key, fingerprint, fingerprint_version, ${claims}
      FROM leads WHERE studio_id LIKE 'many%' ORDER BY studio_id, id`)
    .all()
    .map((row) => Object.values(row));
  database.close();
  return rows;
}

function contents(): Contents {
  const database = direct();
  const rows = database
    .prepare(`
      SELECT studio_id, ${idTextOf('id')}, display_name, contact_type, contact_value, iif(source_id IS NULL, NULL, ${idTextOf('source_id')}), note, stage,
        created_at, updated_at, ${idTextOf('idempotency_key')}, fingerprint, fingerprint_version,
        contact_keys, rule_version, rule_region,
        (SELECT contact_key FROM contact_claims
          WHERE contact_claims.studio_number = leads.studio_number AND contact_key = contact_keys AND lead_number = leads.number)
      FROM leads JOIN studio_numbers ON studio_numbers.number = leads.studio_number
      WHERE studio_id LIKE 'many%' ORDER BY studio_id, leads.id`)
    .all()
    .map((row) => {
      const values = Object.values(row);
      values[11] = hashText(values[11] as Uint8Array);
      values[13] = (hashesIn(values[13] as Uint8Array) ?? ['?']).join(' ');
      values[16] = values[16] === null ? null : hashText(values[16] as Uint8Array);
      return values;
    });
  database.close();
  return rows;
}

/** Compares leads; reports the first difference only. */
function expectSame(now: Contents, before: Contents): void {
  expect(now).toHaveLength(before.length);
  const changed = now.findIndex((lead, index) => !isDeepStrictEqual(lead, before[index]));
  if (changed >= 0) expect(now[changed]).toEqual(before[changed]);
}

/** Fills the file with many leads of three studios, every fourth one closed, as its release stores them. */
function fill({ columns, open, closed, hasTableOfClaims }: Former): void {
  const database = direct();
  const insertWith = (claims: string) =>
    database.prepare(`
      INSERT INTO leads (studio_id, id, display_name, contact_type, contact_value, source_id, note, stage, created_at, updated_at,
        idempotency_key, fingerprint, fingerprint_version, ${columns})
      VALUES (:studioId, :id, 'Ada', 'email', :contact, :source, :note, :stage, :created, :created + 1, :key, :fingerprint, 1, ${claims})`);
  const [insertOpen, insertClosed] = [insertWith(open), insertWith(closed)];
  insertClosed.setAllowUnknownNamedParameters(true);
  const claim = hasTableOfClaims
    ? database.prepare('INSERT INTO contact_claims (studio_id, contact_key, lead_id) VALUES (?, ?, ?)')
    : undefined;
  const hash = () => randomBytes(32).toString('base64url');
  database.exec('BEGIN');
  for (let index = 0; index < MANY; index += 1) {
    const [studioId, id, contactKey] = [`many-${index % 3}`, newId(), hash()];
    const isOpen = index % 4 !== 0;
    (isOpen ? insertOpen : insertClosed).run({
      studioId,
      id,
      contactKey,
      contact: `${index}@example.org`,
      source: index % 2 ? randomUUID() : null,
      note: index % 100 ? null : 'x'.repeat(3000),
      stage: isOpen ? 'contacted' : 'lost',
      created: index,
      key: randomUUID(),
      fingerprint: hash(),
    });
    if (isOpen) claim?.run(studioId, contactKey, id);
  }
  database.exec('COMMIT');
  database.close();
}

const converting = (...options: readonly string[]) => run('test/upgrade/convert.ts', { args: [path, ...options] });
/** The output of the conversion after a transaction. */
const PROGRESS = /\d+ of \d+\n/;

/**
 * The times of kills: after the output matches, and this many milliseconds later. Each process carries out at most one
 * transaction, so the conversion cannot end before the last kill.
 */
const KILLS = [
  { printed: /begins/, pauseMs: 20 },
  { printed: PROGRESS, pauseMs: 0 },
  { printed: /begins/, pauseMs: 60 },
  { printed: PROGRESS, pauseMs: 0 },
  { printed: /begins/, pauseMs: 100 },
] as const;

describe.each(Object.entries(FORMER))('the conversion of many leads, of %s', { timeout: 120_000 }, (_, former) => {
  beforeEach(() => {
    copyFileSync(fileOf(former.file), path);
    fill(former);
  });

  test('continues after each kill, without loss or duplicates', async () => {
    const before = formerContents(former);
    for (const { printed, pauseMs } of KILLS.slice(0, former.transactions - 1)) {
      const running = converting('--wait');
      await running.printed(printed);
      await sleep(pauseMs);
      await running.kill();
    }
    const last = converting();
    expect(await last.ended()).toBe(0);

    expect(last.output()).toMatch(PROGRESS);
    expectSame(contents(), before);
    const left = direct().prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'former%'").all();
    expect(left).toEqual([]);
    const { store } = await open();
    await store.check();
  });

  test('has the same result by several processes at once', async () => {
    const before = formerContents(former);

    const processes = times(3, () => converting());

    await Promise.all(processes.map((each) => each.ended()));
    for (const each of processes) expect(each.output()).toMatch(/over\n$/);
    expectSame(contents(), before);
  });

  test('is complete for any process that opens the store, and reported by the doctor while half done', async () => {
    const stopping = new AbortController();
    const opening = openInSteps(path, { stopping: stopping.signal, onProgress: () => stopping.abort() });
    await expect(opening).rejects.toBe(stopping.signal.reason);

    expect(await examineDatabase(`sqlite:${path}`)).toMatchObject({ contents: { release: 'half-converted' } });
    const { store } = await open();
    const { records } = await store.listLeads('many-0', null, 100);
    expect(records).toHaveLength(100);
    expect(await examineDatabase(`sqlite:${path}`)).toMatchObject({ contents: { release: 'this', indexFaults: [] } });
  });

  test('makes writes of the previous release fail, even through connections opened before', async () => {
    const earlier = direct();
    const statements = former.writes.map((sql) =>
      sql.startsWith('CREATE') ? { run: () => earlier.exec(sql) } : earlier.prepare(sql),
    );
    const stopping = new AbortController();
    const opening = openInSteps(path, { stopping: stopping.signal, onProgress: () => stopping.abort() });
    await expect(opening).rejects.toBe(stopping.signal.reason);

    for (const statement of statements)
      expect(() => statement.run()).toThrow(/no such column|no column named|already exists/);
    await (await open()).store.close();
    for (const statement of statements)
      expect(() => statement.run()).toThrow(/no such column|no column named|already exists/);
  });

  test('is logged by the core, stops with it on SIGTERM, and completes before the next core serves', async () => {
    const env = { DATABASE_URL: `sqlite:${path}` };
    const first = run('src/main.ts', { env });
    await first.printed(/"done":\d+,"total":\d+,"perSecond":\d+,"secondsLeft":\d+,.*converting the database file/);
    first.child.kill('SIGTERM');
    expect(await first.ended()).toBe(0);

    const second = run('src/main.ts', { env });
    await addressOf(second);
    expect(await examineDatabase(env.DATABASE_URL)).toMatchObject({ contents: { release: 'this' } });
  });
});

test('a new file reports no conversion', async () => {
  const reported: object[] = [];
  const file = join(temporaryFolder(), 'new.db');
  const database = await openInSteps(file, { onProgress: (progress) => reported.push(progress) });
  database.close();

  expect(reported).toEqual([]);
});
