import { realpath, stat } from 'node:fs/promises';
import type { DatabaseState } from './database-state.ts';
import { mongoUrlFault } from './mongo/database-name.ts';
import { type ReportUnreadable, StoreUnavailable } from './port/faults.ts';
import type { StoreListeners } from './port/listeners.ts';
import {
  type Backup,
  type BackupWatch,
  backUpFile,
  examineSqlite,
  isAbsent,
  type Vacuumed,
  vacuumFile,
} from './sqlite/database-file.ts';
import { openSqliteStore, readSqlite } from './sqlite/sqlite-store.ts';
import type { RecordStore, Store } from './store.ts';

export { LOG_STAYS } from './port/listeners.ts';
export { absentFileError } from './sqlite/database-file.ts';

/* Only this module depends on the adapters. It loads MongoDB's on demand, because the driver is a third of a command's modules. */

/**
 * Opens the store at an address. A server may be unavailable.
 *
 * @param databaseUrl `sqlite:PATH`, `mongodb://…` or `mongodb+srv://…`
 * @throws StoreUnavailable, with what to do, when a file cannot be opened, or a database has data of a release before 1.2
 */
export async function openStore(databaseUrl: string, listeners: StoreListeners = {}): Promise<Store> {
  const path = filePathIn(databaseUrl);
  if (path !== undefined) return openSqliteStore(path, listeners);
  return (await mongo()).openMongoStore(databaseUrl, listeners);
}

/** Returns the path of the file at an address, if it contains no database yet. `openStore` creates one. */
export function absentFileIn(databaseUrl: string): string | undefined {
  const path = filePathIn(databaseUrl);
  return path !== undefined && isAbsent(path) ? path : undefined;
}

/** Returns a function that reads the size of the log of an address's file, if it names one; bytes. */
export function sqliteLogIn(databaseUrl: string): (() => Promise<number>) | undefined {
  const path = filePathIn(databaseUrl);
  return path === undefined ? undefined : async () => (await stat(`${await realpath(path)}-wal`)).size;
}

/**
 * Reads the records of the database at an address, without creating or changing anything.
 *
 * @throws StoreUnavailable with what is wrong with a file and what to do, or when a server does not answer
 */
export async function readDatabase(
  databaseUrl: string,
  report: ReportUnreadable,
  read: (store: RecordStore) => Promise<void>,
): Promise<void> {
  const path = filePathIn(databaseUrl);
  return path !== undefined ? readSqlite(path, report, read) : (await mongo()).readMongo(databaseUrl, report, read);
}

export async function examineDatabase(databaseUrl: string): Promise<DatabaseState> {
  const path = filePathIn(databaseUrl);
  return path !== undefined ? examineSqlite(path) : (await mongo()).examineMongo(databaseUrl);
}

/**
 * Rewrites the database file at an address without erased data.
 *
 * @throws StoreUnavailable when the address names a server
 */
export const vacuumDatabase = (databaseUrl: string): Vacuumed => vacuumFile(fileNamedBy(databaseUrl, 'compact it'));

/**
 * Backs up the database file at an address to a new file. A core may keep running.
 *
 * @throws StoreUnavailable when the address names a server, or with what is wrong with either file; the reason of
 *   `watch.ending`
 */
export const backUpDatabase = async (databaseUrl: string, file: string, watch: BackupWatch): Promise<Backup> =>
  backUpFile(fileNamedBy(databaseUrl, 'back it up'), file, watch);

/** Returns the fault of an address as the end of the sentence "DATABASE_URL …"; undefined: it is valid. */
export function databaseUrlFault(databaseUrl: string): string | undefined {
  if (/^mongodb(?:\+srv)?:\/\//.test(databaseUrl)) return mongoUrlFault(databaseUrl);
  const path = filePathIn(databaseUrl);
  if (!path) return 'must be sqlite:PATH, mongodb://… or mongodb+srv://…';
  if (/^\s|\s$/.test(path)) return 'has white space around the path: remove it';
  if (/^~|\$\{?\w/.test(path)) return 'has ~ or $ in its path, which nothing expands here: write the path itself';
  // The driver reads `file:` as a URI.
  if (path === ':memory:' || /^file:|\?/.test(path)) {
    return 'must name a file, without file: or parameters: sqlite:PATH; what is in memory would be lost';
  }
  return undefined;
}

const mongo = () => import('./mongo/mongo-store.ts');

const filePathIn = (databaseUrl: string): string | undefined =>
  databaseUrl.startsWith('sqlite:') ? databaseUrl.slice('sqlite:'.length) : undefined;

function fileNamedBy(databaseUrl: string, whatToDo: string): string {
  const path = filePathIn(databaseUrl);
  if (path === undefined) throw new StoreUnavailable(`DATABASE_URL names a server: ${whatToDo} with its own tools`);
  return path;
}
