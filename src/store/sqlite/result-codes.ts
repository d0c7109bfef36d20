/** SQLite's result code for a database that another process has locked. */
export const SQLITE_BUSY = 5;

/** Whether a statement failed because another process holds a lock. */
export const isLocked = (error: unknown): boolean => resultCodeOf(error) === SQLITE_BUSY;

/** The primary result code of a SQLite error: the lowest byte of an extended one; undefined for other errors. */
export function resultCodeOf(error: unknown): number | undefined {
  const { errcode } = Object(error) as { errcode?: number };
  return errcode === undefined ? undefined : errcode & 0xff;
}
