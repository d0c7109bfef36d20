import { closeSync, openSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { SQLITE_BUSY_MS } from '../../../common/deadlines.ts';
import { BY_MIGRATION } from '../../domain/audit.ts';
import { earlierReleaseError } from '../earlier-release.ts';
import { StoreUnavailable } from '../port/faults.ts';
import { fileFault } from './file-fault.ts';
import { isLocked, untilUnlocked } from './group-commit.ts';
import { copyDatabase, withDatabase } from './restores.ts';
import { LEAD_INDEXES, LEADS, SCHEMA_OF_1_2, SET_VERSION, schemaVersion } from './schema.ts';
import { syncFolder } from './sync-folder.ts';

/** The suffix of the copy that a migration leaves beside the file. */
export const COPY_END = '.before-2.0';

/** The number of leads copied between two progress checks. */
const LEADS_AT_ONCE = 20_000;

/** A longer migration reports its progress at this interval; milliseconds. */
const PROGRESS_MS = 1000;

/** The size of a file whose copy takes about a second. */
const LARGE_BYTES = 1e8;

/**
 * Migrates a file of release 1.2 to this release, in one transaction, and leaves a copy of the original. If the process
 * is killed meanwhile, the file of 1.2 remains.
 *
 * @throws StoreUnavailable when the file is in use, or a release before 1.2 wrote it; the file is then unchanged
 */
export function migrateFrom12(path: string): void {
  try {
    // Another starting process may wait for the same lock, so each closes the file before it retries.
    untilUnlocked(() => withDatabase(path, {}, (database) => migrate(database, path)));
  } catch (error) {
    const fault = (error as Error).message.includes('leads_of_2_0.idempotency_key')
      ? 'has two leads with one idempotency key: start release 1.2, whose doctor names them'
      : isLocked(error) && 'is of release 1.2, and another process uses it: stop that process first';
    throw fault ? new StoreUnavailable(`the database file ${path} ${fault}`, error) : error;
  }
}

function migrate(database: DatabaseSync, path: string): void {
  // Only a file's sole connection may change its mode. A core of 1.2 would continue with tables that no longer exist.
  database.exec('PRAGMA journal_mode = DELETE; PRAGMA secure_delete = ON; PRAGMA synchronous = FULL');
  database.exec(`PRAGMA cache_size = -262144; BEGIN IMMEDIATE; PRAGMA busy_timeout = ${SQLITE_BUSY_MS}`);
  if (schemaVersion(database) !== SCHEMA_OF_1_2) return;
  if (isOfBefore12(database)) throw earlierReleaseError(`the database file ${path}`);
  const report = createProgressReport(path);
  const copy = `${realpathSync(path)}${COPY_END}`;
  report('writing a copy');
  writeCopy(path, copy);
  const studios = endRetentionOfHeld(database);
  rebuildLeads(database, report);
  database.exec(`
    DROP TABLE held_leads;
    DROP TABLE held_studios;
    ALTER TABLE studios DROP COLUMN claim_renewal;
    ${MERGE_STUDIOS}
    ${SET_VERSION}`);
  report('writing to the disk');
  database.exec('COMMIT');
  const held = studios.length === 0 ? '' : ` Retention is off for studios that had holds: ${studios.join(', ')}.`;
  process.stderr.write(`${path} is now of release 2.0. ${copy} has it as it was, with its personal data.${held}\n`);
}

/** Whether a release before 1.2 wrote last: the file lacks the last index that 1.2 adds, or has an unfinished step of 1.1. */
const isOfBefore12 = (database: DatabaseSync): boolean =>
  database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'leads_by_stage'").get() === undefined ||
  database.prepare('SELECT 1 FROM studios WHERE claim_renewal IS NOT NULL LIMIT 1').get() !== undefined;

function createProgressReport(path: string): (step: string) => void {
  // Copying a large file, the first step, takes this long on its own.
  let reportsAt = performance.now() + (statSync(path).size < LARGE_BYTES ? PROGRESS_MS : 0);
  return (step) => {
    if (performance.now() < reportsAt) return;
    reportsAt = performance.now() + PROGRESS_MS;
    process.stderr.write(`bringing ${path} from release 1.2 to 2.0: ${step}\n`);
  };
}

/** Writes the copy, replacing the copy of a killed migration. */
function writeCopy(path: string, copy: string): void {
  const partial = `${copy}.partial`;
  const remove = () => ['', '-journal'].map((end) => rmSync(partial + end, { force: true }));
  remove();
  try {
    closeSync(openSync(partial, 'wx', 0o600));
    copyDatabase(path, partial);
    renameSync(partial, copy);
    syncFolder(dirname(copy));
  } catch (error) {
    throw new StoreUnavailable(`the copy ${copy} ${fileFault(error, copy)}`, error);
  } finally {
    remove();
  }
}

/** Ends the retention of studios with holds, and returns them. This release has no holds, and held leads must not be erased. */
function endRetentionOfHeld(database: DatabaseSync): string[] {
  const ofHeld = `studio_id IN (
    SELECT studio_id FROM held_studios UNION
    SELECT studio_id FROM held_leads JOIN leads ON leads.number = lead_number
      JOIN studio_numbers ON studio_numbers.number = studio_number)`;
  database
    .prepare(
      `INSERT INTO audit_events (studio_id, action, time, from_value, caller)
      SELECT studio_id, 'studio-retention-changed', ?, CAST(days AS TEXT), ? FROM studio_retentions WHERE ${ofHeld}`,
    )
    .run(Date.now(), BY_MIGRATION.caller);
  const ended = database.prepare(`DELETE FROM studio_retentions WHERE ${ofHeld} RETURNING studio_id`).all();
  return ended.map(({ studio_id }) => String(studio_id));
}

/** Moves release 1.2's separate tables of studio settings into the rows of the studios. */
const MERGE_STUDIOS = `
  ALTER TABLE studios ADD COLUMN keep_enquiries INTEGER NOT NULL DEFAULT 1;
  ALTER TABLE studios ADD COLUMN is_test INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE studios ADD COLUMN retention TEXT;
  ALTER TABLE studios ADD COLUMN former_regions TEXT NOT NULL DEFAULT '[]';
  UPDATE studios SET keep_enquiries = id NOT IN (SELECT studio_id FROM studios_without_enquiries),
    is_test = id IN (SELECT studio_id FROM test_studios),
    retention = (SELECT json_object('days', days, 'since', since) FROM studio_retentions WHERE studio_id = id),
    former_regions = (SELECT json_group_array(nullif(region_code, '')) FROM former_regions WHERE studio_id = id);
  DROP TABLE studios_without_enquiries;
  DROP TABLE test_studios;
  DROP TABLE studio_retentions;
  DROP TABLE former_regions;`;

/** Moves the leads into a table whose constraints nobody can drop. */
function rebuildLeads(database: DatabaseSync, report: (step: string) => void): void {
  const columns = database
    .prepare("SELECT name FROM pragma_table_info('leads')")
    .all()
    .map(({ name }) => String(name));
  // An erased lead has no texts, and NULL means no note.
  const texts: Record<string, string> = {
    display_name: 'iif(erased_at IS NULL, json_quote(display_name), NULL)',
    note: 'iif(note IS NULL, NULL, json_quote(note))',
  };
  const last = database.prepare('SELECT max(number) AS number FROM leads').get()?.number;
  database.exec(`CREATE TABLE leads_of_2_0 ${LEADS}`);
  const copy = database.prepare(`
    INSERT INTO leads_of_2_0 (${columns}) SELECT ${columns.map((name) => texts[name] ?? name)}
    FROM leads WHERE number > ? ORDER BY number LIMIT ${LEADS_AT_ONCE}`);
  const lastCopied = database.prepare('SELECT coalesce(max(number), 0) AS number FROM leads_of_2_0');
  for (let isDone = false; !isDone; ) {
    const number = lastCopied.get()?.number as number;
    report(`${number} of ${last} leads`);
    isDone = copy.run(number).changes === 0;
  }
  database.exec(`
    DELETE FROM sqlite_sequence WHERE name = 'leads_of_2_0';
    UPDATE sqlite_sequence SET name = 'leads_of_2_0' WHERE name = 'leads';
    DROP TABLE leads;
    ALTER TABLE leads_of_2_0 RENAME TO leads;
    ${LEAD_INDEXES}`);
}
