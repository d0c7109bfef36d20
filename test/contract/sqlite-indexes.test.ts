import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead, claimsOf } from '../support/builders.ts';
import { ID_BYTES } from '../support/raw-sqlite.ts';
import { temporaryFolder } from '../tools/processes.ts';

/** Creates a database: a direct connection to it, and a store on it. */
function aDatabase() {
  const path = join(temporaryFolder(), 'leads.db');
  const store = openSqliteStore(path);
  onTestFinished(() => store.close());
  const direct = new DatabaseSync(path, { timeout: 100_000 });
  onTestFinished(() => direct.close());
  return { store, direct };
}

const create = (store: Store, lead = aLead()) => store.createLead(lead, claimsOf(lead));

// @proves crashes-29
test('every unique index in SQLite is a constraint of its table, which nothing can drop', () => {
  const { direct } = aDatabase();
  const unique = direct
    .prepare(`
      SELECT tables.name || ': ' || indexes.name AS name FROM sqlite_schema AS tables, pragma_index_list(tables.name) AS indexes
      WHERE tables.type = 'table' AND "unique" = 1 AND origin = 'c'`)
    .all();
  expect(unique).toEqual([]);
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
