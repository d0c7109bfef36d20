import { SQLITE_PROBE_MS } from '../../../common/deadlines.ts';
import { type ReportUnreadable, type Store, type StoreObserver, StoreUnavailable } from '../store.ts';
import { sqliteApiKeys } from './api-keys.ts';
import { sqliteAudit } from './audit.ts';
import { Checkpoints } from './checkpoints.ts';
import { sqliteDirectory } from './directory.ts';
import { GroupCommit } from './group-commit.ts';
import { KeyIndex } from './key-index.ts';
import { sqliteLeadChanges } from './lead-changes.ts';
import { sqliteLeads } from './leads.ts';
import { repeatWhileLocked } from './lock-retries.ts';
import { openDatabase } from './open-database.ts';
import { SharedTransaction } from './shared-transaction.ts';
import { writeProbe } from './write-probe.ts';

/**
 * Opens the embedded store: one file, shared by the processes of one machine.
 *
 * @param path relative to the working folder; `:memory:` for a database that is deleted when closed
 * @param observer observes every commit
 * @param report called for each unreadable record that a call skips
 * @throws StoreUnavailable with what is wrong with the file, also when another release has to open it first
 */
export function openSqliteStore<Caller>(
  path: string,
  observer?: StoreObserver<Caller>,
  report: ReportUnreadable = () => {},
): Store {
  const database = openDatabase(path);
  const checkpoints = new Checkpoints(path);
  const reads = new SharedTransaction(database);
  const commits = new GroupCommit(database, () => path !== ':memory:' && checkpoints.committed(), observer);
  const keyIndex = new KeyIndex(database, commits);
  // From here on locks are awaited without blocking the event loop (GroupCommit, repeatWhileLocked).
  database.exec('PRAGMA busy_timeout = 0');
  const store: Store = {
    ...sqliteLeads(database, commits, report, () => path !== ':memory:' && checkpoints.erased()),
    ...sqliteLeadChanges(database, commits, report),
    ...sqliteApiKeys(database, commits, report),
    ...sqliteDirectory(database, commits, report),
    ...sqliteAudit(database, report),
    async check() {
      await keyIndex.check();
      if (commits.lastError === undefined) return;
      // Checks whether a lead could be stored.
      await commits.write(() => writeProbe(database), SQLITE_PROBE_MS);
    },
    async close() {
      if (!database.isOpen) return;
      reads.end();
      await commits.settled();
      // The worker's connection must be closed first: the last one to close removes the log.
      await checkpoints.close();
      if (database.isOpen) database.close();
    },
  };
  return withStoreErrors(sharingReads(store, reads));
}

/** Lets the most frequent reads share a transaction. */
function sharingReads(store: Store, reads: SharedTransaction): Store {
  const { findCredential, findLead, listLeads } = store;
  const share =
    <Args extends unknown[], Result>(read: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      reads.begin();
      return read(...args);
    };
  return { ...store, findCredential: share(findCredential), findLead: share(findLead), listLeads: share(listLeads) };
}

/** Error codes of the driver when the file fails or is closed. */
const DRIVER_ERRORS = new Set(['ERR_SQLITE_ERROR', 'ERR_INVALID_STATE']);

/** Translates the driver's errors in every method. */
function withStoreErrors(store: Store): Store {
  const translated = Object.entries<(...args: never[]) => Promise<unknown>>({ ...store }).map(([name, method]) => [
    name,
    (...args: never[]) =>
      repeatWhileLocked(() => method(...args)).catch((error) => {
        throw DRIVER_ERRORS.has(error?.code) ? new StoreUnavailable('the database cannot be used', error) : error;
      }),
  ]);
  return Object.fromEntries(translated) as Store;
}
