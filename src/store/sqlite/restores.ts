import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite';
import { SQLITE_BUSY_MS } from '../../../common/deadlines.ts';
import { epochAfterRestore } from '../../domain/database-epoch.ts';
import { deploymentEvent, restoreAct } from '../decisions/decision.ts';
import type { RestoreStore } from '../port/restores.ts';
import { checkedEpoch } from '../records.ts';
import type { Connection } from './connection.ts';
import { EPOCHS } from './record-rows.ts';
import { ofStudio } from './rows.ts';

/** The epoch of the database, and the leads that it lost, in SQLite. */
export function sqliteRestores({ prepare, plainCommits, recordEvent }: Connection): RestoreStore {
  const selectMissing = prepare<[id: string]>(`
    SELECT value FROM json_each(?)
    WHERE NOT EXISTS (SELECT 1 FROM leads WHERE ${ofStudio()} AND id = unhex(value, '-'))`);
  const select = EPOCHS.query(prepare, 'WHERE id = 1');
  const put = prepare('INSERT OR REPLACE INTO database_epoch (id, epoch, restored_to) VALUES (1, ?, ?)');
  const find = () => checkedEpoch(select.get() ?? { epoch: 0, restoredTo: null, backedUpAt: null });
  return {
    findEpoch: async () => find(),

    raiseEpoch: (to, now, by) =>
      plainCommits.write(() => {
        const raised = epochAfterRestore(find(), to, now);
        put.run(raised.epoch, raised.restoredTo.getTime());
        recordEvent(deploymentEvent({ ...by, now }, restoreAct(raised)));
        return raised;
      }),

    findMissingLeads: async (studioId, leadIds) => selectMissing.all(JSON.stringify(leadIds), studioId).flat(),
  };
}

/** Opens a file, and always closes it, because an open file would block the next attempt. */
export function withDatabase<Result>(
  path: string,
  options: DatabaseSyncOptions,
  work: (database: DatabaseSync) => Result,
) {
  const database = new DatabaseSync(path, options);
  try {
    return work(database);
  } finally {
    database.close();
  }
}

/**
 * Writes a copy of a database file, without deleted data, that records when it was begun. A copy of a file that no core
 * of this release has opened has no such record.
 *
 * @param inspect called with the file before it is copied
 */
export function copyDatabase(from: string, to: string, inspect = (_: DatabaseSync) => {}): void {
  const begunAt = Date.now();
  // Read-only: it does not block writers, and does not convert an earlier release's file.
  withDatabase(from, { readOnly: true, timeout: SQLITE_BUSY_MS }, (source) => {
    inspect(source);
    source.prepare('VACUUM INTO ?').run(to);
  });
  withDatabase(to, {}, (backup) => {
    // An unregistered restored backup keeps its earlier time.
    if (hasEpoch(backup))
      backup
        .prepare(
          `INSERT INTO database_epoch (id, epoch, backed_up_at) VALUES (1, 0, ?)
          ON CONFLICT (id) DO UPDATE SET backed_up_at = coalesce(backed_up_at, excluded.backed_up_at)`,
        )
        .run(begunAt);
  });
}

/** Whether a file is a backup, or an unregistered restored one. */
export const isBackup = (database: DatabaseSync): boolean =>
  hasEpoch(database) &&
  database.prepare('SELECT 1 FROM database_epoch WHERE id = 1 AND backed_up_at IS NOT NULL').get() !== undefined;

const hasEpoch = (database: DatabaseSync): boolean =>
  database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'database_epoch'").get() !== undefined;
