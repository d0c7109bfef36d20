/*
 * SQL for tests that read or change a SQLite file directly: the tables of leads store a studio as a number, and an id
 * as the bytes of its UUID.
 */

/** The SQL of a studio's number; its parameter is the studio's id. */
export const STUDIO_NUMBER = '(SELECT number FROM studio_numbers WHERE studio_id = ?)';

/** The SQL of an id's bytes; its parameter is the id. */
export const ID_BYTES = "unhex(?, '-')";

/** Returns the SQL of an id's text. */
export const toIdText = (column: string): string => {
  const part = (from: number, length: number) => `substr(lower(hex(${column})), ${from}, ${length})`;
  return [part(1, 8), part(9, 4), part(13, 4), part(17, 4), part(21, 12)].join(" || '-' || ");
};

/** The columns of leads that hold bytes; a text must be cast to be stored in them. */
const BYTES = ['id', 'source_id', 'contact_keys', 'idempotency_key', 'fingerprint'];

export const isBytes = (column: string): boolean => BYTES.includes(column);

/** Returns the SQL that assigns a parameter to a column. */
export const setColumn = (column: string): string => `${column} = ${isBytes(column) ? 'CAST(? AS BLOB)' : '?'}`;
