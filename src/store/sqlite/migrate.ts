import type { DatabaseSync } from 'node:sqlite';
import type { ConversionProgress } from '../conversion.ts';
import { StoreUnavailable } from '../store.ts';
import { MIGRATIONS, MOVING_LEADS } from './migrations.ts';
import { MovingLeads } from './move-leads.ts';
import { resultCodeOf, SQLITE_BUSY } from './result-codes.ts';

/** How long another process may take to begin with the conversion of a large file; milliseconds. */
const OTHERS_BEGIN_MS = 60_000;

/** How many steps of the schema a database has taken. */
export function schemaVersion(database: DatabaseSync): number {
  return database.prepare('PRAGMA user_version').get()?.user_version as number;
}

/**
 * Brings a database's schema up to date, from one transaction to the next: in between, it tells how many leads it has moved.
 * Who does not go on with it leaves the file as it is then; whoever does it next goes on from there.
 *
 * @throws StoreUnavailable when a newer release has written the file
 */
export function* migration(database: DatabaseSync, path: string): Generator<ConversionProgress> {
  // Nothing is written when there is nothing to do: reads are served on a full disk, too.
  if (schemaVersion(database) === MIGRATIONS.length) return;
  // Tables of somebody's own may refer to those of leads: they stay as they are, and so do those references.
  database.exec('PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON');
  try {
    yield* conversion(database, path);
  } finally {
    database.exec('PRAGMA foreign_keys = ON; PRAGMA legacy_alter_table = OFF');
  }
}

/**
 * Leads in the midst of somebody else's tables would be there by mistake alone.
 *
 * @throws StoreUnavailable
 */
export function refuseForeign(database: DatabaseSync, path: string): void {
  // In one look: another process may be making the tables of leads.
  const { version, tables } = database
    .prepare('SELECT user_version AS version, (SELECT count(*) FROM sqlite_schema) AS tables FROM pragma_user_version')
    .get() as { version: number; tables: number };
  if (version === 0 && tables > 0) {
    throw new StoreUnavailable(`the database file ${path} has tables, and none of leads: name a file of its own`);
  }
}

function* conversion(database: DatabaseSync, path: string): Generator<ConversionProgress> {
  const giveUp = performance.now() + OTHERS_BEGIN_MS;
  let moving: MovingLeads | undefined;
  while (schemaVersion(database) !== MIGRATIONS.length) {
    try {
      // Two processes may be at one file: each waits here for the other, and does what is left then.
      inTransaction(database, () => {
        const version = schemaVersion(database);
        if (version > MIGRATIONS.length) {
          throw new StoreUnavailable(
            `a newer release has written the database file ${path} (schema ${version}, this one knows ${MIGRATIONS.length}): start that release, or go back to the copy of before its first start`,
          );
        }
        if (version === MIGRATIONS.length) return;
        takeSteps(database, MOVING_LEADS);
        if (schemaVersion(database) === MOVING_LEADS) {
          moving ??= new MovingLeads(database);
          if (moving.moveSome()) return;
          moving.makeIndex();
        }
        takeSteps(database, MIGRATIONS.length);
      });
    } catch (error) {
      if (resultCodeOf(error) !== SQLITE_BUSY) throw error;
      if (schemaVersion(database) !== MOVING_LEADS && performance.now() > giveUp) throw error;
    }
    // A new file has nothing to convert.
    if (moving && moving.progress.total > 0) yield moving.progress;
  }
}

/** Takes the steps up to one that are still to be taken. */
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
