import { type Connection, carryOut, isSqlite } from './connection.ts';

/** What the table is called unless told. */
export const DEFAULT_TABLE = 'lead_intake_outbox';

/** Keeps processes that make the table at once from meeting in PostgreSQL's catalogue; any number will do. */
const SET_UP_LOCK = 7_165_204_417;

/** @throws TypeError when the name would not be safe in a statement */
export function checkedTable(name: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name)) {
    throw new TypeError('The name of the table must have letters, digits and _ only, and at most 63 of them.');
  }
  return name;
}

/** Statements that make the table and its index where they are missing, on SQLite and PostgreSQL alike. */
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
    // An index has at most 63 characters in its name, too.
    `CREATE INDEX IF NOT EXISTS ${table.slice(0, 59)}_due ON ${table} (state, next_attempt_at)`,
  ];
}

/** Makes the table and its index where they are missing. */
export async function setUp(connection: Connection, table: string): Promise<void> {
  const statements = tableStatements(table);
  if (isSqlite(connection)) {
    for (const sql of statements) carryOut(connection, { sql, values: [] });
  } else {
    // Sent as one text, they are one transaction, at whose end the lock is given back.
    await connection.query([`SELECT pg_advisory_xact_lock(${SET_UP_LOCK})`, ...statements].join(';\n'));
  }
}
