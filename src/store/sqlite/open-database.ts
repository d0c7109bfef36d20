import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { SQLITE_BUSY_MS } from '../../../common/deadlines.ts';
import { StoreUnavailable } from '../store.ts';
import { fileFault } from './file-fault.ts';
import { migrate, refuseForeign } from './migrate.ts';
import { resultCodeOf, SQLITE_BUSY } from './result-codes.ts';

/** The delay between two attempts to enter WAL mode; milliseconds. */
const WAL_RETRY_MS = 5;

/**
 * Opens a database file, creating it, its folder and what is missing in it.
 *
 * @throws StoreUnavailable with what is wrong with the file and what to do, also when another release has to open it first
 */
export function openDatabase(path: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    database = connect(path);
    migrate(database, path);
    return database;
  } catch (error) {
    database?.close();
    throw asUnavailable(path, error);
  }
}

const asUnavailable = (path: string, error: unknown): StoreUnavailable =>
  error instanceof StoreUnavailable
    ? error
    : new StoreUnavailable(`the database file ${path} ${fileFault(error)}`, error);

/** Creates the file for its owner only: leads are personal data. SQLite gives the log files the same permissions. */
function createFile(path: string): void {
  const folder = dirname(resolve(path));
  createFolder(folder);
  closeSync(openSync(path, 'a', 0o600));
  sync(folder);
}

function connect(path: string): DatabaseSync {
  if (path !== ':memory:') createFile(path);
  const database = new DatabaseSync(path, { timeout: SQLITE_BUSY_MS });
  try {
    // Before the first write.
    refuseForeign(database, path);
    enterWal(database);
    // A committed write survives a power failure, not only the end of the process.
    database.exec('PRAGMA synchronous = FULL');
    database.exec('PRAGMA foreign_keys = ON');
    // Deleted and overwritten data are removed from the file.
    database.exec('PRAGMA secure_delete = ON');
    database.exec(`PRAGMA cache_size = -${cacheKib(path)}`);
    // Pages. A fallback in case the worker of Checkpoints fails or falls behind.
    database.exec('PRAGMA wal_autocheckpoint = 16384');
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * The size of SQLite's page cache: enough for the inner pages of all indexes, and more for large files. Not more below
 * 1 GiB: there, SQLite searches its whole cache after many commits for pages beyond the end of the file, because it
 * counts the page at 1 GiB, which it never writes, as cached.
 */
function cacheKib(path: string): number {
  return path !== ':memory:' && statSync(path).size >= 2 ** 30 ? 65_536 : 16_384;
}

/** Creates a folder and its parents durably. */
function createFolder(folder: string): void {
  const highest = mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (highest === undefined) return;
  for (let created = folder; created.length >= highest.length; created = dirname(created)) sync(dirname(created));
}

/** Syncs a folder, so that new files in it survive a power failure; SQLite does that only for its own files. */
function sync(folder: string): void {
  const opened = openSync(folder, 'r');
  fsyncSync(opened);
  closeSync(opened);
}

/** Enters WAL mode, with retries: SQLite fails immediately while another process does the same. */
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
