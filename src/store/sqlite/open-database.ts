import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, statfsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { SQLITE_BUSY_MS } from '../../../common/deadlines.ts';
import { ofEarlierRelease } from '../earlier-release.ts';
import { StoreUnavailable } from '../store.ts';
import { isLocked, resultCodeOf } from './group-commit.ts';
import { OpenedFiles } from './opened-files.ts';
import { missingAdditions, SCHEMA, SCHEMA_VERSION, schemaVersion } from './schema.ts';

const WAL_RETRY_MS = 5;

/**
 * Opens a database file, creating it, its folder and what is missing in it.
 *
 * @throws StoreUnavailable with what is wrong with the file and what to do, also when another release has to open it first
 */
export function openDatabase(path: string): { readonly database: DatabaseSync; readonly files: OpenedFiles } {
  let database: DatabaseSync | undefined;
  try {
    if (path !== ':memory:') createFile(path);
    const files = new OpenedFiles(path);
    database = new DatabaseSync(path, { timeout: SQLITE_BUSY_MS });
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
    migrate(database, path);
    if (path !== ':memory:') files.addLog();
    return { database, files };
  } catch (error) {
    database?.close();
    if (error instanceof StoreUnavailable) throw error;
    throw new StoreUnavailable(`the database file ${path} ${fileFault(error, path)}`, error);
  }
}

/** Creates the file for its owner only: leads are personal data. SQLite gives the log files the same permissions. */
function createFile(path: string): void {
  const folder = dirname(resolve(path));
  createFolder(folder);
  closeSync(openSync(path, 'a', 0o600));
  syncFolder(folder);
}

/**
 * The size of SQLite's page cache: enough for the inner pages of all indexes, and more for large files. Not more below
 * 1 GiB: there, SQLite searches its whole cache after many commits for pages beyond the end of the file, because it
 * counts the page at 1 GiB, which it never writes, as cached.
 */
const cacheKib = (path: string): number => (path !== ':memory:' && statSync(path).size >= 2 ** 30 ? 65_536 : 16_384);

function createFolder(folder: string): void {
  const highest = mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (highest === undefined) return;
  for (let created = folder; created.length >= highest.length; created = dirname(created)) syncFolder(dirname(created));
}

/** Syncs a folder, so that new files in it survive a power failure; SQLite does that only for its own files. */
export function syncFolder(folder: string): void {
  const opened = openSync(folder, 'r');
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

/** Enters WAL mode, with retries: SQLite fails immediately while another process does the same. */
function enterWal(database: DatabaseSync): void {
  const giveUp = performance.now() + SQLITE_BUSY_MS;
  for (;;) {
    try {
      database.exec('PRAGMA journal_mode = WAL');
      return;
    } catch (error) {
      if (!isLocked(error) || performance.now() > giveUp) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAL_RETRY_MS);
    }
  }
}

/**
 * Creates what is missing in a database. Writes nothing if all is there, so that reads are served on a full disk, too.
 *
 * @throws StoreUnavailable when the file needs another release
 */
function migrate(database: DatabaseSync, path: string): void {
  const isWhole = schemaVersion(database) === SCHEMA_VERSION && missingAdditions(database).length === 0;
  if (isWhole && !isRenewing(database)) return;
  // Several processes may open one file: each waits here for the others, and does what is left.
  database.exec('BEGIN IMMEDIATE');
  try {
    const version = schemaVersion(database);
    if (version > SCHEMA_VERSION) {
      throw new StoreUnavailable(
        `a newer release has written the database file ${path} (schema ${version}, this one knows ${SCHEMA_VERSION}): start that release, or restore the copy from before its first start`,
      );
    }
    if (version > 0 && (version < SCHEMA_VERSION || isRenewing(database)))
      throw ofEarlierRelease(`the database file ${path}`);
    if (version === 0) database.exec(`${SCHEMA} PRAGMA user_version = ${SCHEMA_VERSION}`);
    for (const create of missingAdditions(database)) database.exec(create);
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** Refuses a database with tables of another program, because it can only have been named by mistake. */
function refuseForeign(database: DatabaseSync, path: string): void {
  // One statement, because another process may be creating the tables.
  const { version, tables } = database
    .prepare('SELECT user_version AS version, (SELECT count(*) FROM sqlite_schema) AS tables FROM pragma_user_version')
    .get() as { version: number; tables: number };
  if (version === 0 && tables > 0) {
    throw new StoreUnavailable(`the database file ${path} belongs to another program: name a file of its own`);
  }
}

/** Whether something is left that a release before 1.2 has begun. */
const isRenewing = (database: DatabaseSync): boolean =>
  database.prepare('SELECT 1 FROM studios WHERE claim_renewal IS NOT NULL LIMIT 1').get() !== undefined;

/** What a file system error means for a database file, and what to do. */
const FILE_FAULTS: Readonly<Record<string, string>> = {
  EACCES: 'may not be opened by this user: give them the file and its folder, to read and to write',
  EPERM: 'may not be opened by this user: give them the file and its folder, to read and to write',
  EISDIR: 'is a folder: name a file, which may be in it',
  ENOTDIR: 'cannot be created: a part of its path is a file, not a folder',
  EEXIST: 'cannot be created: a part of its path is a file, not a folder',
  EROFS: 'is on a read-only file system: name another place, or mount it for writing',
  ENOSPC: 'cannot be created, because its disk is full: make room',
};

/** The same by SQLite's result codes. */
const SQLITE_FAULTS: Readonly<Record<number, string>> = {
  5: 'is locked by another process: stop that process',
  8: 'is read-only: give this user the file and its folder, to read and to write',
  10: 'cannot be read or written: check whether its disk is full or broken',
  11: 'is damaged: restore a backup',
  13: 'cannot be written, because its disk is full: make room',
  14: 'cannot be opened: check whether this user may write its folder and the files beside it (-wal, -shm), and whether the path is a file',
  26: 'is not a database: name another file, or restore a backup',
};

/** Why a database file cannot be opened, and what to do, as the end of the sentence "the database file …". */
export function fileFault(error: unknown, path: string): string {
  const { code, message } = error as { code?: string; message: string };
  const resultCode = resultCodeOf(error);
  // Without one, SQLite reports that a file cannot be opened, and the system that the disk is full.
  if ((resultCode === 14 || code === 'ENOSPC') && hasNoInodes(path))
    return `cannot be used, because its file system has no inodes left, whatever room it has: delete files (${message})`;
  const known = resultCode === undefined ? FILE_FAULTS[code ?? ''] : SQLITE_FAULTS[resultCode];
  return known === undefined ? `cannot be used: ${message}` : `${known} (${message})`;
}

/** Whether no file can be created beside another. Some file systems count no inodes. */
function hasNoInodes(path: string): boolean {
  const { files, ffree } = statfsSync(nearestFolder(path));
  return files > 0 && ffree === 0;
}

/** Returns the folder of a file, or the lowest one above it that exists. */
export function nearestFolder(path: string): string {
  const folder = dirname(path);
  return existsSync(folder) ? folder : nearestFolder(folder);
}
