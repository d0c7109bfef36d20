import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { SQLITE_BUSY_MS } from '../../../common/deadlines.ts';
import type { ConversionWatch } from '../conversion.ts';
import { StoreUnavailable } from '../store.ts';
import { fileFault } from './file-fault.ts';
import { migration, refuseForeign } from './migrate.ts';
import { resultCodeOf, SQLITE_BUSY } from './result-codes.ts';

/** How long a write waits that is made for nobody; milliseconds. */
const SHORT_BUSY_TIMEOUT_MS = 100;

/** The pause between two attempts to enter WAL; milliseconds. */
const WAL_RETRY_MS = 5;

/**
 * Opens a database file, made with its folder when it is not there, and brings its schema up to date.
 *
 * @throws StoreUnavailable with what is wrong with the file and what to do about it, also when a newer release has written it
 */
export function openDatabase(path: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    database = connected(path);
    for (const _ of migration(database, path));
    return database;
  } catch (error) {
    database?.close();
    throw asUnavailable(path, error);
  }
}

/**
 * The same for a process that goes on meanwhile: a file of an earlier release with millions of leads takes minutes.
 *
 * @throws the reason of `watch.stopping`, and then the next start goes on from there
 */
export async function openInSteps(path: string, { stopping, onProgress }: ConversionWatch): Promise<DatabaseSync> {
  let database: DatabaseSync | undefined;
  try {
    database = connected(path);
    for (const progress of migration(database, path)) {
      onProgress?.(progress);
      await setImmediate();
      stopping?.throwIfAborted();
    }
    return database;
  } catch (error) {
    database?.close();
    throw stopping?.aborted ? error : asUnavailable(path, error);
  }
}

const asUnavailable = (path: string, error: unknown): StoreUnavailable =>
  error instanceof StoreUnavailable
    ? error
    : new StoreUnavailable(`the database file ${path} ${fileFault(error)}`, error);

/** The leads are personal data: what is made here is its owner's alone, and SQLite makes the log and its index like the file. */
function makeFile(path: string): void {
  const folder = dirname(resolve(path));
  makeFolder(folder);
  closeSync(openSync(path, 'a', 0o600));
  sync(folder);
}

function connected(path: string): DatabaseSync {
  if (path !== ':memory:') makeFile(path);
  const database = new DatabaseSync(path, { timeout: SQLITE_BUSY_MS });
  try {
    // Before anything is changed in it.
    refuseForeign(database, path);
    enterWal(database);
    // What is answered as written survives a power cut, not only the end of the process.
    database.exec('PRAGMA synchronous = FULL');
    database.exec('PRAGMA foreign_keys = ON');
    // What is deleted or written over is not to be found in the file any more.
    database.exec('PRAGMA secure_delete = ON');
    database.exec(`PRAGMA cache_size = -${cacheKib(path)}`);
    // Pages. A thread of its own moves them into the database; here only should it fall behind, or not be there.
    database.exec('PRAGMA wal_autocheckpoint = 16384');
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * How much of a file SQLite keeps in memory, taken only as it fills: the inner pages of all indexes, and of large files more.
 * Not more of one below 1 GiB: there SQLite looks through all that it keeps after many a commit, for pages beyond the file's
 * end, because it counts a page as kept that it never writes, the one at 1 GiB.
 */
function cacheKib(path: string): number {
  return path !== ':memory:' && statSync(path).size >= 2 ** 30 ? 65_536 : 16_384;
}

/** Makes a folder with those above it, where there is none; a power cut takes none of them back. */
function makeFolder(folder: string): void {
  const highest = mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (highest === undefined) return;
  for (let made = folder; made.length >= highest.length; made = dirname(made)) sync(dirname(made));
}

/** What was made in a folder stays once the folder is synced; SQLite does that for its own files only. */
function sync(folder: string): void {
  const opened = openSync(folder, 'r');
  fsyncSync(opened);
  closeSync(opened);
}

/** Does what another process that is writing must not hold up for long, because everybody here would wait with it. */
export function withoutWaitingLong(database: DatabaseSync, work: () => void): void {
  database.exec(`PRAGMA busy_timeout = ${SHORT_BUSY_TIMEOUT_MS}`);
  try {
    work();
  } finally {
    database.exec(`PRAGMA busy_timeout = ${SQLITE_BUSY_MS}`);
  }
}

/** Entering WAL does not wait for another process that does the same: SQLite answers "busy" at once. */
function enterWal(database: DatabaseSync): void {
  const giveUp = performance.now() + SQLITE_BUSY_MS;
  for (;;) {
    try {
      database.exec('PRAGMA journal_mode = WAL');
      return;
    } catch (error) {
      if (resultCodeOf(error) !== SQLITE_BUSY || performance.now() > giveUp) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAL_RETRY_MS);
    }
  }
}
