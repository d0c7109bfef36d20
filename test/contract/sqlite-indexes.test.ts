import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { errorSummary } from '../../common/error-summary.ts';
import { examine } from '../../operator/doctor/examine.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { type Store, StoreUnavailable } from '../../src/store/store.ts';
import { aLead, aMember, anApiKey, aStudio, BY, claimsOf, NOW, STUDIO_ID } from '../support/builders.ts';
import { temporaryFolder } from '../support/processes.ts';
import { ID_BYTES, LEAD_NUMBER } from '../support/raw-sqlite.ts';
import { duplicatesContract } from './duplicates-contract.ts';
import { moveLead } from './store-actions.ts';

/** Creates a database: its path, a direct connection, and a store on it. */
function aDatabase() {
  const path = join(temporaryFolder(), 'leads.db');
  const open = () => {
    const store = openSqliteStore(path);
    onTestFinished(() => store.close());
    return store;
  };
  const store = open();
  const direct = new DatabaseSync(path);
  onTestFinished(() => direct.close());
  return { path, open, store, direct };
}

const create = (store: Store, lead = aLead(), claims = claimsOf(lead)) => store.createLead(lead, claims);
const checked = (store: Store) => store.check().then(() => 'ok', errorSummary);
const leadsIn = (database: DatabaseSync) => database.prepare('SELECT count(*) AS leads FROM leads').get()?.leads;

async function doctorFaults(path: string): Promise<string[]> {
  const findings = await examine(['core'], { DATABASE_URL: `sqlite:${path}` });
  return findings.filter(({ verdict }) => verdict === 'fault').map(({ says }) => says);
}

/** Creates a database without one unique index, and with two leads that it would not allow. */
async function aDatabaseWithDuplicates(by: 'key' | 'contact') {
  const opened = aDatabase();
  const { store, direct } = opened;
  const [alone, closed, first, second] = [aLead(), aLead(), aLead(), aLead()];
  const [claims, firstClaims] = [claimsOf(alone), claimsOf(first)];
  await create(store, alone, claims);
  await create(store, closed);
  await moveLead(store, closed, 'lost');
  await create(store, first, firstClaims);
  await create(store, second);
  direct.exec(by === 'key' ? 'DROP INDEX leads_by_idempotency_key' : COPIED_CLAIMS);
  const [table, number, column] =
    by === 'key' ? ['leads', 'number', 'idempotency_key'] : ['contact_claims', 'lead_number', 'contact_key'];
  const its = `${number} = ${LEAD_NUMBER}`;
  direct
    .prepare(`UPDATE ${table} SET ${column} = (SELECT ${column} FROM ${table} WHERE ${its}) WHERE ${its}`)
    .run(first.id, second.id);
  expect(await checked(store)).toMatch(/cannot be built/);
  return { ...opened, alone, claims, closed, first, second, firstClaims };
}

/** Replaces the table of claims by a copy without its primary key, which cannot be dropped alone. */
const COPIED_CLAIMS = `
  CREATE TABLE copy AS SELECT * FROM contact_claims;
  DROP TABLE contact_claims;
  ALTER TABLE copy RENAME TO contact_claims`;

describe('the indexes in SQLite', () => {
  test.each([
    ['leads', 'leads_by_idempotency_key', 'DROP INDEX leads_by_idempotency_key'],
    ['contact_claims', 'contact_claims_by_contact', COPIED_CLAIMS],
  ])(
    'the unique index of %s is recreated immediately when it is lost, and no duplicate is written meanwhile',
    async (table, index, loss) => {
      const { store, direct } = aDatabase();
      const lead = aLead();
      const claims = claimsOf(lead);
      await create(store, lead, claims);

      direct.exec(loss);

      const another = aLead({ contact: lead.contact });
      expect(await create(store, { ...another, contact: lead.contact })).toMatchObject({ kind: 'already-open' });
      expect(await create(store, { ...lead, id: randomUUID() }, claims)).toMatchObject({ kind: 'replayed' });
      expect(direct.prepare('SELECT "unique" FROM pragma_index_list(?) WHERE name = ?').get(table, index)).toEqual({
        unique: 1,
      });
      expect(await checked(store)).toBe('ok');
    },
  );

  test('an index recreated in the turn of a read stays', async () => {
    const { store, direct } = aDatabase();
    const [lead, next] = [aLead(), aLead()];
    await create(store, lead);
    direct.exec(
      'DROP INDEX leads_by_idempotency_key; CREATE INDEX leads_by_idempotency_key ON leads (studio_number, stage)',
    );
    await expect(create(store)).rejects.toBeInstanceOf(StoreUnavailable);

    const reading = store.findLead(STUDIO_ID, lead.id);
    direct.exec('DROP INDEX leads_by_idempotency_key');
    await expect(create(store, next)).resolves.toEqual({ kind: 'created', lead: next });

    expect(await reading).toEqual(lead);
    expect(
      direct.prepare("SELECT 1 FROM pragma_index_list('leads') WHERE name = 'leads_by_idempotency_key'").get(),
    ).toBeDefined();
  });

  test.each([
    [
      'that is not unique',
      'CREATE INDEX leads_by_idempotency_key ON leads (studio_number, idempotency_key)',
      /is not unique/,
    ],
    [
      'that is partial',
      "CREATE UNIQUE INDEX leads_by_idempotency_key ON leads (studio_number, idempotency_key) WHERE stage = 'new'",
      /is partial/,
    ],
    [
      'of other columns',
      'CREATE UNIQUE INDEX leads_by_idempotency_key ON leads (studio_number, idempotency_key, stage)',
      /has other columns/,
    ],
    [
      'to which texts in other letter case are the same',
      'CREATE UNIQUE INDEX leads_by_idempotency_key ON leads (studio_number, idempotency_key COLLATE NOCASE)',
      /has other columns/,
    ],
  ])(
    'with an index %s of the same name nothing is created, even after a restart, until it is dropped',
    async (_what, sql, fault) => {
      const { path, open, store, direct } = aDatabase();
      direct.exec(`DROP INDEX leads_by_idempotency_key; ${sql}`);

      for (const each of [store, open()]) {
        expect(await checked(each)).toMatch(fault);
        await expect(create(each)).rejects.toBeInstanceOf(StoreUnavailable);
        expect((await each.listLeads(STUDIO_ID, null, 10)).records).toEqual([]);
      }
      expect(leadsIn(direct)).toBe(0);
      expect(await doctorFaults(path)).toEqual([expect.stringMatching(fault)]);

      direct.exec('DROP INDEX leads_by_idempotency_key');
      expect(await checked(store)).toBe('ok');
      expect(await create(store)).toMatchObject({ kind: 'created' });
    },
  );

  test('an index lost between the call and the write of a creation makes the creation fail', async () => {
    const { store, direct } = aDatabase();
    const creation = create(store);

    direct.exec(`
      DROP INDEX leads_by_idempotency_key;
      CREATE INDEX leads_by_idempotency_key ON leads (studio_number, idempotency_key)`);

    await expect(creation).rejects.toBeInstanceOf(StoreUnavailable);
    expect(leadsIn(direct)).toBe(0);
  });

  test('an index that cannot be created because another process writes is created later', async () => {
    const { store, direct } = aDatabase();
    direct.exec('DROP INDEX leads_by_idempotency_key; BEGIN IMMEDIATE');

    expect(await checked(store)).toMatch(/leads_by_idempotency_key is missing/);
    await expect(create(store)).rejects.toBeInstanceOf(StoreUnavailable);

    direct.exec('ROLLBACK');
    await expect.poll(() => checked(store)).toBe('ok');
  });

  test('an index dropped while no process ran is created at the start', async () => {
    const { open, store, direct } = aDatabase();
    await store.close();
    direct.exec('DROP INDEX leads_by_idempotency_key');

    open();

    const names = direct
      .prepare('SELECT name FROM pragma_index_list(?)')
      .all('leads')
      .map(({ name }) => name);
    expect(names).toContain('leads_by_idempotency_key');
  });

  test('an index works under any name', async () => {
    const { store, direct } = aDatabase();
    direct.exec(`
      DROP INDEX leads_by_idempotency_key;
      CREATE UNIQUE INDEX another ON leads (studio_number, idempotency_key)`);

    expect(await checked(store)).toBe('ok');
    expect(await create(store)).toMatchObject({ kind: 'created' });
  });

  test('with a table of keys without its constraints, no key is created, keys can be revoked, and leads are created', async () => {
    const { store, direct } = aDatabase();
    const key = anApiKey();
    await store.putStudio(aStudio(), BY);
    await store.putMember(aMember(), BY);
    await store.createApiKey(key, NOW);
    // A copy of the table, with another index in place of the original one.
    direct.exec(`
      PRAGMA foreign_keys = OFF;
      CREATE TABLE copy AS SELECT * FROM api_keys;
      DROP TABLE api_keys;
      ALTER TABLE copy RENAME TO api_keys;
      CREATE INDEX api_keys_by_slot ON api_keys (studio_id, slot)`);

    await expect(store.createApiKey(anApiKey(), NOW)).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await checked(store)).toMatch(/api_keys_by_slot is invalid/);
    expect(await store.revokeApiKey(STUDIO_ID, key.id, BY)).toMatchObject({ revokedAt: NOW });
    expect(await create(store)).toMatchObject({ kind: 'created' });
  });

  test.each([
    ['closed', `UPDATE leads SET stage = 'lost' WHERE id = ${ID_BYTES}`],
    ['deleted', `DELETE FROM leads WHERE id = ${ID_BYTES}`],
  ])('a lead %s directly in the database does not block its contact', async (_, sql) => {
    const { store, direct } = aDatabase();
    const lead = aLead();
    await create(store, lead);
    direct.prepare(sql).run(lead.id);

    expect(await create(store, aLead({ contact: lead.contact }))).toMatchObject({ kind: 'created' });
  });

  describe('with duplicates', () => {
    test.each(['key', 'contact'] as const)(
      'with one %s: core and doctor name the leads and none of their data',
      async (by) => {
        const { path, open, store, direct, first, second } = await aDatabaseWithDuplicates(by);

        const messages = [
          await checked(store),
          await checked(open()),
          await create(store).catch(errorSummary),
          ...(await doctorFaults(path)),
        ];
        expect(messages).toHaveLength(4);
        for (const text of messages) {
          expect(text).toContain(`${STUDIO_ID}/${first.id} = ${STUDIO_ID}/${second.id}`);
          expect(text).not.toContain('open:');
          expect(text).not.toContain(first.contact.value);
        }
        expect(leadsIn(direct)).toBe(4);

        direct.prepare(`DELETE FROM contact_claims WHERE lead_number = ${LEAD_NUMBER}`).run(second.id);
        direct.prepare(`DELETE FROM leads WHERE id = ${ID_BYTES}`).run(second.id);
        await expect.poll(() => checked(store)).toBe('ok');
        expect(await create(store)).toMatchObject({ kind: 'created' });
      },
    );

    duplicatesContract(aDatabaseWithDuplicates, ['key']);
  });
});
