import type { ConversionWatch } from './conversion.ts';
import type { DatabaseState } from './database-state.ts';
import { mongoUrlFault } from './mongo/connection.ts';
import { examineMongo } from './mongo/examine-mongo.ts';
import { openMongoStore } from './mongo/mongo-store.ts';
import { type Backup, type BackupWatch, backUpFile } from './sqlite/backup.ts';
import { examineSqlite } from './sqlite/examine-sqlite.ts';
import { openInParts } from './sqlite/open-database.ts';
import { openSqliteStore } from './sqlite/sqlite-store.ts';
import { type Vacuumed, vacuumFile } from './sqlite/vacuum.ts';
import { type ReportUnreadable, type Store, type StoreObserver, StoreUnavailable } from './store.ts';

/*
 * The one place that knows which adapters there are: everybody else has a database's address, and asks here.
 */

/**
 * Opens the store that an address names.
 *
 * @param databaseUrl `sqlite:PATH`, `mongodb://…` or `mongodb+srv://…`
 * @param observer is told of every command to the database
 * @param report is told of every record that cannot be read where a call goes on without it
 * @param watch is told how far a file of an earlier release is converted, and may break that off
 * @throws StoreUnavailable when a file cannot be opened, with what to do about it; a server need not be there yet
 */
export async function openStore<Asker>(
  databaseUrl: string,
  observer?: StoreObserver<Asker>,
  report?: ReportUnreadable,
  watch: ConversionWatch = {},
): Promise<Store> {
  const path = filePathIn(databaseUrl);
  if (path === undefined) return openMongoStore(databaseUrl, observer, report);
  return openSqliteStore(path, observer, report, await openInParts(path, watch));
}

/** Looks at the database that an address names, and changes nothing in it. */
export async function examineDatabase(databaseUrl: string): Promise<DatabaseState> {
  const path = filePathIn(databaseUrl);
  return path === undefined ? examineMongo(databaseUrl) : examineSqlite(path);
}

/**
 * Writes the file that an address names anew, without what was erased.
 *
 * @throws StoreUnavailable when it names a server, which sees to its files itself
 */
export function vacuumDatabase(databaseUrl: string): Vacuumed {
  const path = filePathIn(databaseUrl);
  if (path === undefined) throw new StoreUnavailable('DATABASE_URL names a server: its own tools write its files anew');
  return vacuumFile(path);
}

/**
 * Writes the file that an address names, as it is now, into a new file. A core may go on.
 *
 * @throws StoreUnavailable when it names a server, or with what is wrong with either file; the reason of `watch.ending`
 */
export async function backUpDatabase(databaseUrl: string, file: string, watch: BackupWatch): Promise<Backup> {
  const path = filePathIn(databaseUrl);
  if (path === undefined) throw new StoreUnavailable('DATABASE_URL names a server: its own tools make its backups');
  return backUpFile(path, file, watch);
}

/** What is wrong with an address, as the end of the sentence "DATABASE_URL …". */
export function databaseUrlFault(databaseUrl: string): string | undefined {
  if (/^mongodb(?:\+srv)?:\/\//.test(databaseUrl)) return mongoUrlFault(databaseUrl);
  return filePathIn(databaseUrl) ? undefined : 'must be sqlite:PATH, mongodb://… or mongodb+srv://…';
}

/** The path in the address of a file; undefined in any other. */
const filePathIn = (databaseUrl: string): string | undefined =>
  databaseUrl.startsWith('sqlite:') ? databaseUrl.slice('sqlite:'.length) : undefined;
