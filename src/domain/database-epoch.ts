import { DAY_MS } from '../../common/units.ts';
import { CLOCKS_DIFFER_MS } from './new-id.ts';

/** Which database this is: when a backup is restored, what was stored since is gone, and another database goes on. */
export interface DatabaseEpoch {
  /** Grows with each restore: its time, or more; milliseconds since 1970. 0: the database was never restored. */
  readonly epoch: number;
  /** Whatever was stored before is there; null: the database was never restored. */
  readonly restoredTo: Date | null;
  /** When the backup was begun that this database is a copy of, if nobody has noted yet that it was restored; else null. */
  readonly backedUpAt: Date | null;
}

/**
 * Returns the epoch of a database after a restore. One that is restored from an older backup, which knows nothing of restores
 * since, gets a higher one, too. A consumer may have heard of none of several restores: it has to look behind the earliest.
 *
 * @param to when its backup was begun; null: nobody knows, or as the backup says
 */
export function epochAfterRestore(
  { epoch, restoredTo: before, backedUpAt }: DatabaseEpoch,
  to: Date | null,
  now: Date,
): DatabaseEpoch & { readonly restoredTo: Date } {
  // What was stored shortly before a backup may be lost, too.
  const begun = [to, backedUpAt].flatMap((time) => (time ? Math.max(0, time.getTime() - CLOCKS_DIFFER_MS) : []));
  // What is too early has more leads compared, what is too late has some stay. A database that knows of an earlier restore was
  // backed up after it.
  const earliest = Math.min(...begun, ...(before ? [before.getTime()] : []));
  return {
    epoch: Math.max(epoch + 1, now.getTime()),
    restoredTo: new Date(Number.isFinite(earliest) ? earliest : 0),
    backedUpAt: null,
  };
}

/** How far the clocks of cores may have been ahead before a restore; milliseconds. Revisions since are higher by this. */
export const MAX_AHEAD_BEFORE_RESTORE_MS = DAY_MS;
