import type { DatabaseSync } from 'node:sqlite';
import { epochAfterRestore } from '../../domain/database-epoch.ts';
import { deploymentEvent, restoreAct } from '../decisions/decision.ts';
import type { RestoreStore } from '../port/restores.ts';
import { checkedEpoch } from '../records.ts';
import type { Connection } from './connection.ts';
import { EPOCHS } from './record-rows.ts';
import { ofStudio } from './rows.ts';

/** Which database this is, and what it has lost, in SQLite. */
export function sqliteRestores({ prepare, plainCommits, recordEvent }: Connection): RestoreStore {
  const selectMissing = prepare(`
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

    findMissingLeads: async (studioId, leadIds) =>
      selectMissing.all(JSON.stringify(leadIds), studioId).map(([id]) => id as string),
  };
}

/** Notes in a backup when it was begun. That of a file that no core of this release has opened is left as it is. */
export function markBackup(backup: DatabaseSync, begunAt: number): void {
  if (!hasEpoch(backup)) return;
  // One of a backup that was restored, and of which nobody has noted that, is earlier.
  backup
    .prepare(
      `INSERT INTO database_epoch (id, epoch, backed_up_at) VALUES (1, 0, ?)
        ON CONFLICT (id) DO UPDATE SET backed_up_at = coalesce(backed_up_at, excluded.backed_up_at)`,
    )
    .run(begunAt);
}

/** Whether a file is a backup, or was restored from one and nobody has noted that. */
export const isBackup = (database: DatabaseSync): boolean =>
  hasEpoch(database) &&
  database.prepare('SELECT 1 FROM database_epoch WHERE id = 1 AND backed_up_at IS NOT NULL').get() !== undefined;

const hasEpoch = (database: DatabaseSync): boolean =>
  database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'database_epoch'").get() !== undefined;
