import { DAY_MS } from '../../common/units.ts';
import { CLOCKS_DIFFER_MS } from './new-id.ts';

/** The identity of a database. Restoring a backup loses later writes, so consumers must treat the result as another database. */
export interface DatabaseEpoch {
  /** Grows with each restore: the time of the restore in milliseconds since 1970, or more. 0: never restored. */
  readonly epoch: number;
  /** No data stored before this time was lost; null: the database was never restored. */
  readonly restoredTo: Date | null;
  /** When the backup began, if this database is a backup that nobody has registered as restored; otherwise null. */
  readonly backedUpAt: Date | null;
}

/**
 * Returns the epoch of a database after a restore. It grows even if an older backup knows nothing of later restores. A
 * consumer may have missed several restores, so `restoredTo` is the earliest of them.
 *
 * @param to when its backup began; null: unknown, or stored in the backup
 */
export function epochAfterRestore(
  { epoch, restoredTo: before, backedUpAt }: DatabaseEpoch,
  to: Date | null,
  now: Date,
): DatabaseEpoch & { readonly restoredTo: Date } {
  // A backup may also lack what was stored shortly before it began.
  const begun = [to, backedUpAt].flatMap((time) => (time ? Math.max(0, time.getTime() - CLOCKS_DIFFER_MS) : []));
  // Too early compares more leads than needed; too late misses some. If no start of the backup is known, the time of an
  // earlier restore is early enough, because the backup was made after that restore.
  const earliest = Math.min(...begun, ...(before ? [before.getTime()] : []));
  return {
    epoch: Math.max(epoch + 1, now.getTime()),
    restoredTo: new Date(Number.isFinite(earliest) ? earliest : 0),
    backedUpAt: null,
  };
}

/** How far cores' clocks may have been ahead before a restore; milliseconds. Later revisions are higher by this much. */
export const MAX_AHEAD_BEFORE_RESTORE_MS = DAY_MS;
