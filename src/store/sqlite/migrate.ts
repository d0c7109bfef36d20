import type { DatabaseSync } from 'node:sqlite';
import { ofFirstRelease } from '../release-1-1.ts';
import { StoreUnavailable } from '../store.ts';
import { ADDITIONS } from './additions.ts';
import { SCHEMA, SCHEMA_VERSION } from './schema.ts';

/** The `user_version` of a database; 0: it is empty. */
export function schemaVersion(database: DatabaseSync): number {
  return database.prepare('PRAGMA user_version').get()?.user_version as number;
}

/**
 * Creates what is missing in a database, and ends renewals of claims that release 1.1 has begun: they would rewrite the
 * keys that leads were opened with. Writes nothing if all is there, so that reads are served on a full disk, too.
 *
 * @throws StoreUnavailable when the file needs another release
 */
export function migrate(database: DatabaseSync, path: string): void {
  if (schemaVersion(database) === SCHEMA_VERSION && missingAdditions(database).length === 0 && !isRenewing(database))
    return;
  // Several processes may open one file: each waits here for the others, and does what is left.
  database.exec('BEGIN IMMEDIATE');
  try {
    const version = schemaVersion(database);
    if (version > SCHEMA_VERSION) {
      throw new StoreUnavailable(
        `a newer release has written the database file ${path} (schema ${version}, this one knows ${SCHEMA_VERSION}): start that release, or restore the copy from before its first start`,
      );
    }
    if (version > 0 && version < SCHEMA_VERSION) throw ofFirstRelease(`the database file ${path}`);
    if (version === 0) database.exec(`${SCHEMA} PRAGMA user_version = ${SCHEMA_VERSION}`);
    for (const { create } of missingAdditions(database)) database.exec(create);
    endRenewals(database, path);
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/**
 * Refuses a database with tables of another program, because it can only have been named by mistake.
 *
 * @throws StoreUnavailable
 */
export function refuseForeign(database: DatabaseSync, path: string): void {
  // One statement, because another process may be creating the tables.
  const { version, tables } = database
    .prepare('SELECT user_version AS version, (SELECT count(*) FROM sqlite_schema) AS tables FROM pragma_user_version')
    .get() as { version: number; tables: number };
  if (version === 0 && tables > 0) {
    throw new StoreUnavailable(`the database file ${path} belongs to another program: name a file of its own`);
  }
}

function missingAdditions(database: DatabaseSync) {
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  return ADDITIONS.filter((addition) => !tables.some(({ name }) => name === addition.name));
}

const isRenewing = (database: DatabaseSync): boolean =>
  database.prepare('SELECT 1 FROM studios WHERE claim_renewal IS NOT NULL LIMIT 1').get() !== undefined;

/** The former rules of all renewals. */
const FORMER_RULES = `studios, json_each(iif(json_valid(claim_renewal), claim_renewal, '{}'), '$.formerRules') AS rule`;

const fieldOfRule = (name: string) => `json_extract(claim_renewal, rule.fullkey || '.${name}')`;

/** @throws StoreUnavailable when leads may have keys by the rule of release 1.0 */
function endRenewals(database: DatabaseSync, path: string): void {
  const ofFirst = database.prepare(`SELECT 1 FROM ${FORMER_RULES} WHERE ${fieldOfRule('version')} = 1 LIMIT 1`).get();
  if (ofFirst !== undefined) throw ofFirstRelease(`the database file ${path}`);
  database.exec(`
    INSERT OR IGNORE INTO former_regions (studio_id, region_code)
    SELECT studios.id, coalesce(${fieldOfRule('region')}, '') FROM ${FORMER_RULES};
    UPDATE studios SET claim_renewal = NULL WHERE claim_renewal IS NOT NULL`);
}
