/** SQLite's result code for a database that another process has locked. */
export const SQLITE_BUSY = 5;

/** SQLite's result code for a violated unique index. */
export const SQLITE_CONSTRAINT = 19;

/** The primary result code of a SQLite error: the lowest byte of an extended one; undefined for other errors. */
export function resultCodeOf(error: unknown): number | undefined {
  const { errcode } = error as { errcode?: number };
  return errcode === undefined ? undefined : errcode & 0xff;
}
