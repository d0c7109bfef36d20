/** SQLite's result code for a database that another process holds. */
export const SQLITE_BUSY = 5;

/** SQLite's result code for rows that a unique index does not allow beside each other. */
export const SQLITE_CONSTRAINT = 19;

/** The result code of an error of SQLite; undefined for any other. The extended ones have the plain one in their lowest byte. */
export function resultCodeOf(error: unknown): number | undefined {
  const { errcode } = error as { errcode?: number };
  return errcode === undefined ? undefined : errcode & 0xff;
}
