import { closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { SQLITE_BUSY_MS } from '../../../common/deadlines.ts';
import { earlierReleaseError } from '../earlier-release.ts';
import { StoreUnavailable } from '../port/faults.ts';
import { fileFault } from './file-fault.ts';
import { untilUnlocked } from './group-commit.ts';
import { migrateFrom12 } from './migrate.ts';
import { type OpenedFiles, openedFiles } from './opened-files.ts';
import { SCHEMA, SCHEMA_OF_1_2, SCHEMA_VERSION, SET_VERSION } from './schema.ts';
import { syncFolder } from './sync-folder.ts';

/**
 * Opens a database file, creating it, its folder and missing tables.
 *
 * @throws StoreUnavailable with what is wrong with the file and what to do, such as opening it with another release first
 */
export function openDatabase(path: string): { readonly database: DatabaseSync; readonly files: OpenedFiles } {
  let database: DatabaseSync | undefined;
  try {
    createFile(path);
    const files = openedFiles(path);
    database = new DatabaseSync(path, { timeout: SQLITE_BUSY_MS });
    // Before the first write, because the file may be another release's.
    if (knownVersion(database, path) === SCHEMA_OF_1_2) {
      database.close();
      database = undefined;
      migrateFrom12(path);
      database = new DatabaseSync(path, { timeout: SQLITE_BUSY_MS });
    }
    enterWal(database);
    // A committed write survives a power failure, not only the end of the process.
    database.exec('PRAGMA synchronous = FULL');
    database.exec('PRAGMA foreign_keys = ON');
    // Overwrites deleted data in the file.
    database.exec('PRAGMA secure_delete = ON');
    database.exec(`PRAGMA cache_size = -${cacheKib(path)}`);
    // In pages. Takes effect only if the worker of createCheckpoints fails or falls behind.
    database.exec('PRAGMA wal_autocheckpoint = 16384');
    createSchema(database, path);
    files.addLog();
    return { database, files };
  } catch (error) {
    database?.close();
    if (error instanceof StoreUnavailable) throw error;
    throw new StoreUnavailable(`the database file ${path} ${fileFault(error, path)}`, error);
  }
}

/** Creates the file for its owner only, because leads are personal data. SQLite gives the log files the same permissions. */
function createFile(path: string): void {
  const folder = dirname(resolve(path));
  createFolder(folder);
  closeSync(openSync(path, 'a', 0o600));
  syncFolder(folder);
}

/**
 * Returns the size of SQLite's page cache: enough for the inner pages of all indexes, and more for large files. Below 1
 * GiB it must not be larger. There, SQLite counts the never-written page at 1 GiB as cached. After many commits it then
 * searches its whole cache for pages beyond the file's end.
 */
const cacheKib = (path: string): number => (statSync(path).size >= 2 ** 30 ? 65_536 : 16_384);

function createFolder(folder: string): void {
  const highest = mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (highest === undefined) return;
  for (let created = folder; created.length >= highest.length; created = dirname(created)) syncFolder(dirname(created));
}

/** Enters WAL mode, with retries, because SQLite fails immediately while another process does the same. */
const enterWal = (database: DatabaseSync): void => untilUnlocked(() => database.exec('PRAGMA journal_mode = WAL'));

/** Creates the tables of a new database. Writes nothing if they exist, so that a full disk still serves reads. */
function createSchema(database: DatabaseSync, path: string): void {
  if (knownVersion(database, path) === SCHEMA_VERSION) return;
  // Several processes may open the file at once. Each waits here for the others, and then checks again.
  database.exec('BEGIN IMMEDIATE');
  if (knownVersion(database, path) === 0) database.exec(`${SCHEMA} ${SET_VERSION}`);
  database.exec('COMMIT');
}

/** Returns a schema version that this release can use; 0: no schema. @throws StoreUnavailable */
function knownVersion(database: DatabaseSync, path: string): number {
  // A single statement, because another process may be creating the tables.
  const { version, tables } = database
    .prepare('SELECT user_version AS version, (SELECT count(*) FROM sqlite_schema) AS tables FROM pragma_user_version')
    .get() as { version: number; tables: number };
  if (version === 0 && tables > 0)
    throw new StoreUnavailable(`the database file ${path} belongs to another program: name a file of its own`);
  if (version > SCHEMA_VERSION)
    throw new StoreUnavailable(
      `a newer release has written the database file ${path} (schema ${version}, this one knows ${SCHEMA_VERSION}): start that release, or restore the copy from before its first start`,
    );
  if (version !== 0 && version < SCHEMA_OF_1_2) throw earlierReleaseError(`the database file ${path}`);
  return version;
}
