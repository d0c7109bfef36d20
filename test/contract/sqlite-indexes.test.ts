import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { errorSummary } from '../../common/error-summary.ts';
import { examine } from '../../operator/doctor/examine.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { type Store, StoreUnavailable } from '../../src/store/store.ts';
import { aLead, claimsOf, STUDIO_ID } from '../support/builders.ts';
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
  const direct = new DatabaseSync(path, { timeout: 100_000 });
  onTestFinished(() => direct.close());
  return { path, open, store, direct };
}

/** How long an index that could not be made may take to be made. */
const AGAIN_MS = 20_000;

const create = (store: Store, lead = aLead(), claims = claimsOf(lead)) => store.createLead(lead, claims);
const checked = (store: Store) => store.check().then(() => 'ok', errorSummary);
const leadsIn = (database: DatabaseSync) => database.prepare('SELECT count(*) AS leads FROM leads').get()?.leads;

async function doctorFaults(path: string): Promise<string[]> {
  const findings = await examine(['core'], { DATABASE_URL: `sqlite:${path}` });
  return findings.filter(({ verdict }) => verdict === 'fault').map(({ says }) => says);
}

/** Creates a database without its index of keys, and with two leads that it would not allow. */
async function aDatabaseWithDuplicates() {
  const opened = aDatabase();
  const { store, direct } = opened;
  const [alone, closed, first, second] = [aLead(), aLead(), aLead(), aLead()];
  for (const lead of [alone, closed, first, second]) await create(store, lead);
  await moveLead(store, closed, 'lost');
  direct.exec('DROP INDEX leads_by_idempotency_key');
  const its = `number = ${LEAD_NUMBER}`;
  direct
    .prepare(`UPDATE leads SET idempotency_key = (SELECT idempotency_key FROM leads WHERE ${its}) WHERE ${its}`)
    .run(first.id, second.id);
  expect(await checked(store)).toMatch(/is missing, not unique or partial.*; duplicates/);
  return { ...opened, alone, closed, first, second };
}

// @proves crashes-29
describe('the indexes in SQLite', () => {
  test('all others are constraints of their tables, which nothing can drop', () => {
    const { direct } = aDatabase();
    const unique = direct
      .prepare(`
        SELECT tables.name || ': ' || indexes.name AS name FROM sqlite_schema AS tables, pragma_index_list(tables.name) AS indexes
        WHERE tables.type = 'table' AND "unique" = 1 AND origin = 'c'`)
      .all();
    expect(unique).toEqual([{ name: 'leads: leads_by_idempotency_key' }]);
  });

  test('without the index of keys nothing is created, until a check has made it again', async () => {
    const { store, direct } = aDatabase();
    const lead = aLead();
    const claims = claimsOf(lead);
    await create(store, lead, claims);

    direct.exec('DROP INDEX leads_by_idempotency_key');
    await expect(create(store)).rejects.toBeInstanceOf(StoreUnavailable);
    expect(leadsIn(direct)).toBe(1);
    expect(await checked(store)).toBe('ok');

    expect(await create(store, { ...aLead(), id: randomUUID() }, claims)).toMatchObject({ kind: 'replayed' });
    expect(await create(store)).toMatchObject({ kind: 'created' });
  });

  test('with an index of the same name that is not unique nothing is created, until it is dropped', async () => {
    const { path, store, direct } = aDatabase();
    direct.exec(`
      DROP INDEX leads_by_idempotency_key;
      CREATE INDEX leads_by_idempotency_key ON leads (studio_number, idempotency_key)`);

    expect(await checked(store)).toMatch(/is missing, not unique or partial/);
    await expect(create(store)).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await doctorFaults(path)).toEqual([expect.stringMatching(/is missing, not unique or partial/)]);

    direct.exec('DROP INDEX leads_by_idempotency_key');
    await expect.poll(() => checked(store), { timeout: AGAIN_MS }).toBe('ok');
    expect(await create(store)).toMatchObject({ kind: 'created' });
  });

  test('an index lost between the call and the write of a creation makes the creation fail', async () => {
    const { store, direct } = aDatabase();
    const creation = create(store);

    direct.exec(`
      DROP INDEX leads_by_idempotency_key;
      CREATE INDEX leads_by_idempotency_key ON leads (studio_number, idempotency_key)`);

    await expect(creation).rejects.toBeInstanceOf(StoreUnavailable);
    expect(leadsIn(direct)).toBe(0);
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

  test('duplicates are named by core and doctor, with none of their data', async () => {
    const { path, open, store, direct, first, second } = await aDatabaseWithDuplicates();

    const messages = [await checked(store), await checked(open()), ...(await doctorFaults(path))];
    expect(messages).toHaveLength(3);
    for (const text of messages) {
      expect(text).toContain(`${STUDIO_ID}/${first.id} = ${STUDIO_ID}/${second.id}`);
      expect(text).not.toContain(first.contact.value);
    }

    direct.prepare(`DELETE FROM contact_claims WHERE lead_number = ${LEAD_NUMBER}`).run(second.id);
    direct.prepare(`DELETE FROM leads WHERE id = ${ID_BYTES}`).run(second.id);
    await expect.poll(() => checked(store), { timeout: AGAIN_MS }).toBe('ok');
    expect(await create(store)).toMatchObject({ kind: 'created' });
  });

  describe('with duplicates', () => duplicatesContract(aDatabaseWithDuplicates));
});
