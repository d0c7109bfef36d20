import type { DatabaseSync } from 'node:sqlite';
import type { ConversionProgress } from '../conversion.ts';
import { StoreUnavailable } from '../store.ts';
import { MIGRATIONS, MOVING_LEADS } from './migrations.ts';
import { MovingLeads } from './move-leads.ts';

/** SQLite's result code for a database that another process holds. */
const SQLITE_BUSY = 5;

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
  // Two processes may start on one file: the second waits here and finds nothing left to do.
  inTransaction(database, () => {
    const version = schemaVersion(database);
    if (version > MIGRATIONS.length) {
      throw new StoreUnavailable(
        `the database file ${path} has schema ${version}, this release knows ${MIGRATIONS.length}: use a newer release`,
      );
    }
    takeSteps(database, MOVING_LEADS);
  });
  yield* movedLeads(database);
}

function* movedLeads(database: DatabaseSync): Generator<ConversionProgress> {
  let moving: MovingLeads | undefined;
  for (;;) {
    try {
      const isOver = inTransaction(database, () => {
        // Another process has done the rest.
        if (schemaVersion(database) !== MOVING_LEADS) return true;
        moving ??= new MovingLeads(database);
        if (moving.moveSome()) return false;
        moving.makeIndex();
        takeSteps(database, MIGRATIONS.length);
        return true;
      });
      if (isOver) return;
    } catch (error) {
      // Another process moves them, too: it may hold the file for as long as it makes the index.
      if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error;
    }
    if (moving) yield moving.progress;
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
