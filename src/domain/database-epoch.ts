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
 * @param to whatever was stored before is there
 */
export const epochAfterRestore = (
  { epoch, restoredTo }: DatabaseEpoch,
  to: Date,
  now: Date,
): DatabaseEpoch & { readonly restoredTo: Date } => ({
  epoch: Math.max(epoch + 1, now.getTime()),
  restoredTo: restoredTo && restoredTo < to ? restoredTo : to,
  backedUpAt: null,
});

/** How far the clocks of cores may have been ahead before a restore; milliseconds. Revisions since are higher by this. */
export const MAX_AHEAD_BEFORE_RESTORE_MS = 86_400_000;
