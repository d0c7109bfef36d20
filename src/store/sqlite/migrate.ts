import type { DatabaseSync } from 'node:sqlite';
import type { ConversionProgress } from '../conversion.ts';
import { StoreUnavailable } from '../store.ts';
import { MIGRATIONS, MOVING_LEADS } from './migrations.ts';
import { MovingLeads } from './move-leads.ts';
import { resultCodeOf, SQLITE_BUSY } from './result-codes.ts';

/** How long another process may take to start converting a large file; milliseconds. */
const OTHERS_START_MS = 60_000;

/** The number of migration steps that a database has taken. */
export function schemaVersion(database: DatabaseSync): number {
  return database.prepare('PRAGMA user_version').get()?.user_version as number;
}

/**
 * Migrates a database to the current schema, in several transactions. Yields the progress between them. The caller may
 * stop after any of them; the next migration resumes there.
 *
 * @throws StoreUnavailable when a newer release has written the file
 */
export function* migration(database: DatabaseSync, path: string): Generator<ConversionProgress> {
  // Writes nothing if the schema is current, so that reads are served on a full disk, too.
  if (schemaVersion(database) === MIGRATIONS.length) return;
  // Tables added by an operator may reference those of leads; they and their references must not change.
  database.exec('PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON');
  try {
    yield* conversion(database, path);
  } finally {
    database.exec('PRAGMA foreign_keys = ON; PRAGMA legacy_alter_table = OFF');
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

function* conversion(database: DatabaseSync, path: string): Generator<ConversionProgress> {
  const giveUp = performance.now() + OTHERS_START_MS;
  let moving: MovingLeads | undefined;
  while (schemaVersion(database) !== MIGRATIONS.length) {
    try {
      // Several processes may convert one file: each waits here for the others, and does what is left.
      inTransaction(database, () => {
        const version = schemaVersion(database);
        if (version > MIGRATIONS.length) {
          throw new StoreUnavailable(
            `a newer release has written the database file ${path} (schema ${version}, this one knows ${MIGRATIONS.length}): start that release, or restore the copy from before its first start`,
          );
        }
        if (version === MIGRATIONS.length) return;
        takeSteps(database, MOVING_LEADS);
        if (schemaVersion(database) === MOVING_LEADS) {
          moving ??= new MovingLeads(database);
          if (moving.moveSome()) return;
          moving.buildIndex();
        }
        takeSteps(database, MIGRATIONS.length);
      });
    } catch (error) {
      if (resultCodeOf(error) !== SQLITE_BUSY) throw error;
      if (schemaVersion(database) !== MOVING_LEADS && performance.now() > giveUp) throw error;
    }
    // A new file has no leads to move.
    if (moving && moving.progress.total > 0) yield moving.progress;
  }
}

/** Takes the remaining steps up to `last`. */
function takeSteps(database: DatabaseSync, last: number): void {
  const taken = schemaVersion(database);
  if (taken >= last) return;
  for (const step of MIGRATIONS.slice(taken, last)) database.exec(step);
  database.exec(`PRAGMA user_version = ${last}`);
}

function inTransaction<Result>(database: DatabaseSync, work: () => Result): Result {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}
