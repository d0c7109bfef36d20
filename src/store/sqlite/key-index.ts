import type { DatabaseSync } from 'node:sqlite';
import { SQLITE_PROBE_MS } from '../../../common/deadlines.ts';
import { describeDuplicates, MAX_GROUPS, MAX_IN_GROUP, refusalOfCreations } from '../database-state.ts';
import { StoreUnavailable } from '../store.ts';
import type { GroupCommit } from './group-commit.ts';
import { idText } from './rows.ts';

/**
 * The index of idempotency keys, the one unique index that can be dropped: all others are constraints of their tables.
 * The insert of a lead names its columns in ON CONFLICT, and SQLite refuses that while there is none.
 */
export const KEY_INDEX = 'leads_by_idempotency_key';
const COLUMNS = 'studio_number, idempotency_key';

/** How long to wait after an attempt to make the index, which may read all leads, relative to its duration. */
const PAUSE = 9;

/**
 * Makes the index if it is missing. Returns a function that checks it, and makes it again.
 *
 * @throws StoreUnavailable by the check when the index is missing or invalid, and cannot be made
 */
export function keyIndexCheck(database: DatabaseSync, commits: Pick<GroupCommit, 'write'>): () => Promise<void> {
  const make = () => database.exec(`CREATE UNIQUE INDEX IF NOT EXISTS ${KEY_INDEX} ON leads (${COLUMNS})`);
  let lastFault: string | undefined;
  let nextBuildAt = 0;
  try {
    if (!isEnforced(database)) make();
  } catch {
    // The check says why.
  }
  return async () => {
    if (isEnforced(database)) return;
    const began = performance.now();
    if (began >= nextBuildAt) {
      // It fails while leads violate the index, or another process writes.
      await commits.write(make, SQLITE_PROBE_MS).catch(() => {});
      lastFault = keyIndexFault(database);
      nextBuildAt = performance.now() + PAUSE * (performance.now() - began);
    }
    if (lastFault !== undefined) throw new StoreUnavailable(refusalOfCreations([lastFault]));
  };
}

/** Returns what is wrong with the index, with the leads that violate it; undefined: nothing. */
export function keyIndexFault(database: DatabaseSync): string | undefined {
  if (isEnforced(database)) return undefined;
  const duplicates = describeDuplicates(duplicateKeys(database));
  return `the index ${KEY_INDEX} is missing, not unique or partial: drop one of that name${duplicates ? `; ${duplicates}` : ''}`;
}

/** Asks SQLite, which prepares no insert whose ON CONFLICT names columns without a unique index of all rows. */
function isEnforced(database: DatabaseSync): boolean {
  // A read, and not the preparation of a statement, notices that another connection has changed the schema.
  database.prepare('SELECT 1 FROM leads LIMIT 1').get();
  try {
    database.prepare(`INSERT INTO leads SELECT * FROM leads WHERE false ON CONFLICT (${COLUMNS}) DO NOTHING`);
    return true;
  } catch (error) {
    if (!(error as Error).message.includes('ON CONFLICT')) throw error;
    return false;
  }
}

/** Finds groups of leads with one key. Returns only their ids, oldest first. */
function duplicateKeys(database: DatabaseSync): string[][] {
  const groups = database
    .prepare(`SELECT ${COLUMNS} FROM leads GROUP BY ${COLUMNS} HAVING count(*) > 1 LIMIT ${MAX_GROUPS}`)
    .all();
  const select = database.prepare(
    `SELECT studio_id, hex(leads.id) AS id FROM leads JOIN studio_numbers ON studio_numbers.number = studio_number
    WHERE studio_number = :studio_number AND idempotency_key = :idempotency_key ORDER BY leads.id LIMIT ${MAX_IN_GROUP}`,
  );
  return groups.map((group) => select.all(group).map((row) => `${row.studio_id}/${idText(String(row.id))}`));
}
