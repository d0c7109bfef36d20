import { type Connection, carryOut, isSqlite } from './connection.ts';

/** The default name of the table, deprecated. */
export const DEFAULT_TABLE = 'lead_intake_outbox';

const DEFAULT_TABLE_WARNING = `The default table ${DEFAULT_TABLE} of an outbox is deprecated, because a second website in the same database would send its leads: name a table, such as createOutbox({ table: 'example_com_leads' }), or the present one.`;

/** An arbitrary advisory lock: concurrent CREATE TABLE IF NOT EXISTS can fail in PostgreSQL's catalogue. */
const SET_UP_LOCK = 7_165_204_417;

/** @throws TypeError when the name is not safe in a statement */
export function checkedTable(name: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name)) {
    throw new TypeError('The name of the table must be 1 to 63 letters, digits and _, and not begin with a digit.');
  }
  return name;
}

/** Warns through `process`, where there is one. */
export function warnOfDefaultTable(): void {
  globalThis.process?.emitWarning?.(DEFAULT_TABLE_WARNING, 'DeprecationWarning');
}

/** The length of the table's name within its memo's name: names are limited to 63 characters. */
export const MEMO_NAME_LENGTH = 58;

/** Returns the name of the memo's table, for data of the outbox other than leads. */
export const toMemoTable = (table: string): string => `${table.slice(0, MEMO_NAME_LENGTH)}_memo`;

/** Returns the statement that creates that table if it does not exist. */
const memoStatement = (table: string): string =>
  `CREATE TABLE IF NOT EXISTS ${toMemoTable(table)} (
  name VARCHAR(32) NOT NULL PRIMARY KEY,
  value TEXT NOT NULL,
  token VARCHAR(36) NOT NULL
)`;

/** Returns the statements that create the table, its index and its memo if they do not exist, on SQLite and PostgreSQL. */
export function tableStatements(table: string): string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (
  idempotency_key CHAR(36) NOT NULL PRIMARY KEY,
  capture TEXT NULL,
  state VARCHAR(16) NOT NULL,
  attempts INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  next_attempt_at BIGINT NOT NULL,
  settled_at BIGINT NULL,
  lead_id CHAR(36) NULL,
  reason VARCHAR(1000) NULL
)`,
    // Index names are limited to 63 characters, too.
    `CREATE INDEX IF NOT EXISTS ${table.slice(0, 59)}_due ON ${table} (state, next_attempt_at)`,
    memoStatement(table),
  ];
}

/** Creates the table, its index and its memo if they do not exist. */
export async function setUp(connection: Connection, table: string): Promise<void> {
  await create(connection, tableStatements(table));
  // A driver that the outbox does not support fails here, before the first lead.
  await carryOut(connection, { sql: `SELECT idempotency_key FROM ${table} LIMIT 1`, values: [] });
}

/** Creates the memo if an earlier release has set up the table. */
export const setUpMemo = (connection: Connection, table: string): Promise<void> =>
  create(connection, [memoStatement(table)]);

async function create(connection: Connection, statements: readonly string[]): Promise<void> {
  if (isSqlite(connection)) {
    for (const sql of statements) carryOut(connection, { sql, values: [] });
  } else {
    // Sent as one query, they are one transaction, which releases the lock at its end.
    await connection.query([`SELECT pg_advisory_xact_lock(${SET_UP_LOCK})`, ...statements].join(';\n'));
  }
}
