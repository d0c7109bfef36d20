import { DatabaseSync } from 'node:sqlite';
import { SQLITE_BUSY_MS, SQLITE_PROBE_MS } from '../../../common/deadlines.ts';
import { type ReportUnreadable, StoreUnavailable } from '../port/faults.ts';
import type { StoreListeners } from '../port/listeners.ts';
import type { RecordStore, Store } from '../store.ts';
import { sqliteApiKeys } from './api-keys.ts';
import { sqliteAudit } from './audit.ts';
import { createCheckpoints } from './checkpoints.ts';
import { type Connection, connectionTo } from './connection.ts';
import { sqliteConsumers } from './consumers.ts';
import { sqliteDeliveries } from './deliveries.ts';
import { sqliteDirectory } from './directory.ts';
import { distribution, sqliteResending } from './distribution.ts';
import { fileFault } from './file-fault.ts';
import { GroupCommit, readResultCode, repeatWhileLocked, sharedTransaction } from './group-commit.ts';
import { sqliteLeadReads } from './lead-reads.ts';
import { sqliteLeadWrites } from './leads.ts';
import { openDatabase } from './open-database.ts';
import type { OpenedFiles } from './opened-files.ts';
import { sqliteRequestLog } from './request-log.ts';
import { sqliteRestores } from './restores.ts';
import { sqliteRetention } from './retention.ts';
import { SCHEMA_VERSION, schemaVersion } from './schema.ts';
import { reportSlowStatements } from './slow-statements.ts';

/**
 * Opens the embedded store: one file, shared by the processes of one machine.
 *
 * @param path relative to the working folder
 * @throws StoreUnavailable with what is wrong with the file and what to do, such as opening it with another release first
 */
export function openSqliteStore(path: string, { observer, report, slow, logStays }: StoreListeners = {}): Store {
  const { database, files } = openDatabase(path);
  if (slow) reportSlowStatements(database, slow);
  const checkpoints = createCheckpoints(path, files.identities, logStays);
  const reads = sharedTransaction(database);
  const checkFiles = () =>
    files.check(() => {
      reads.end();
      // Empties the log into the opened file. Otherwise SQLite would later apply the log to the file that took its place.
      database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    });
  const committed = () => {
    checkFiles();
    checkpoints.committed();
  };
  const commits = new GroupCommit(database, committed, observer);
  const connection = connectionTo(database, reads, commits, report);
  // From here on, waiting for locks does not block the event loop (GroupCommit, repeatWhileLocked).
  database.exec('PRAGMA busy_timeout = 0');
  const records = storeOn(connection);
  const store: Store = {
    ...records,
    // The log may contain the erased data, so it is truncated.
    eraseLead: (erasure) => records.eraseLead(erasure).finally(checkpoints.erased),
    deleteLeads: (...leads) => records.deleteLeads(...leads).finally(checkpoints.erased),
    async check() {
      checkFiles();
      if (commits.lastError === undefined) return;
      // Checks whether a lead could be stored.
      await commits.write(() => writeProbe(database), SQLITE_PROBE_MS);
    },
    async close() {
      if (!database.isOpen) return;
      reads.end();
      await commits.settled();
      // The worker's connection must be closed first, because the last one to close removes the log.
      await checkpoints.close();
      if (database.isOpen) database.close();
    },
  };
  return guardCalls(store, reads, files);
}

const storeOn = (connection: Connection): RecordStore => ({
  ...sqliteLeadWrites(connection),
  ...sqliteLeadReads(connection),
  ...sqliteResending(connection),
  ...sqliteConsumers(connection),
  ...sqliteDeliveries(connection, distribution(connection)),
  ...sqliteRestores(connection),
  ...sqliteRetention(connection),
  ...sqliteApiKeys(connection),
  ...sqliteDirectory(connection),
  ...sqliteAudit(connection),
  ...sqliteRequestLog(connection),
});

/**
 * Reads the records of an undamaged database file while other processes use it. Writes nothing into it.
 *
 * @throws StoreUnavailable with what is wrong with the file and what to do
 */
export async function readSqlite(
  path: string,
  report: ReportUnreadable,
  read: (store: RecordStore) => Promise<void>,
): Promise<void> {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { readOnly: true, timeout: SQLITE_BUSY_MS });
    const fault = contentsFault(database);
    if (fault !== undefined) throw new StoreUnavailable(`the database file ${path} ${fault}`);
    const connection = connectionTo(database, sharedTransaction(database), new GroupCommit(database), report);
    await read(storeOn(connection));
  } catch (error) {
    if (readResultCode(error) === undefined) throw error;
    throw new StoreUnavailable(`the database file ${path} ${fileFault(error, path)}`, error);
  } finally {
    database?.close();
  }
}

/** The maximum number of damaged places that SQLite names. */
const MAX_BROKEN = 10;

/** Returns why a file's records cannot be read, and what to do, as the end of the sentence "the database file …". */
function contentsFault(database: DatabaseSync): string | undefined {
  const found = database.prepare(`PRAGMA integrity_check(${MAX_BROKEN})`).all();
  const broken = found.map((row) => row.integrity_check).join('; ');
  if (broken !== 'ok') return `is damaged: restore a backup (${broken})`;
  if (schemaVersion(database) === SCHEMA_VERSION) return undefined;
  return 'is not of this release: start a core of this release on it first';
}

/** The most frequent reads, which share a transaction. */
const SHARING = new Set<keyof Store>(['findCredential', 'findLead', 'findPublicLead', 'listLeads', 'listPublicLeads']);

const DRIVER_ERRORS = new Set(['ERR_SQLITE_ERROR', 'ERR_INVALID_STATE']);

/** Refuses calls once the files are gone, shares reads, repeats calls while the file is locked, and translates errors. */
function guardCalls(store: Store, reads: ReturnType<typeof sharedTransaction>, files: OpenedFiles): Store {
  const guarded = Object.entries<(...args: never[]) => Promise<unknown>>({ ...store }).map(([name, method]) => {
    const isSharing = SHARING.has(name as keyof Store);
    return [
      name,
      (...args: never[]) =>
        repeatWhileLocked(() => {
          if (name !== 'close') files.requireFound();
          if (isSharing) reads.begin();
          return method(...args);
        }).catch((error) => {
          throw DRIVER_ERRORS.has(error?.code) ? new StoreUnavailable('the database cannot be used', error) : error;
        }),
    ];
  });
  return Object.fromEntries(guarded) as Store;
}

/** The size of a probe in bytes: larger than most transactions, because a smaller one might fit where a creation would not. */
const PROBE_BYTES = 256 * 1024;

/**
 * Writes a large row, to test whether transactions can be committed again. Overwrites the same pages of its own table. On
 * a disk without room for the log, it fails like any write.
 */
function writeProbe(database: DatabaseSync): void {
  database.exec(`
    CREATE TABLE IF NOT EXISTS write_probe (id INTEGER NOT NULL PRIMARY KEY, filler BLOB NOT NULL) STRICT;
    INSERT INTO write_probe (id, filler) VALUES (1, randomblob(${PROBE_BYTES}))
      ON CONFLICT (id) DO UPDATE SET filler = excluded.filler`);
}
