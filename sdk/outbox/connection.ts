import { OutboxError } from './outbox-error.ts';

/** What columns hold, and statements are given. */
export type Value = string | number | null;

/** A website's database on SQLite: a `DatabaseSync` of `node:sqlite`, or a `Database` of better-sqlite3. */
export interface SqliteConnection {
  prepare(sql: string): {
    run(...values: Value[]): { readonly changes: number | bigint };
    all(...values: Value[]): unknown[];
  };
}

/** A website's database on PostgreSQL: a `Client`, `PoolClient` or `Pool` of `pg`. */
export interface PostgresConnection {
  query(text: string, values?: Value[]): Promise<{ readonly rows: unknown[]; readonly rowCount: number | null }>;
}

/** The latest time of a Date, and, negative, the earliest; milliseconds since 1970. */
const LATEST_MS = 8.64e15;

export type Connection = SqliteConnection | PostgresConnection;

/** SQL with a `?` for each of its values. */
export interface Statement {
  readonly sql: string;
  readonly values: readonly Value[];
}

/** A row that was read; whole numbers may be texts or bigints, as the driver likes. */
export type Row = Readonly<Record<string, string | number | bigint | null>>;

/** What came of a statement: the rows that it has read, or how many it has written. */
export interface Result {
  readonly rows: readonly Row[];
  readonly changes: number;
}

export const isSqlite = (connection: Connection): connection is SqliteConnection => 'prepare' in connection;

/**
 * The key that a row has.
 *
 * @throws OutboxError when it has no text there: a driver may be told to give rows otherwise
 */
export function keyIn(row: Row): string {
  if (typeof row.idempotency_key === 'string') return row.idempotency_key;
  throw new OutboxError('A row has no text as its idempotency_key: the driver must give rows as objects with texts.');
}

/** A time as the table has it, in milliseconds; the nearest one that a Date can have. */
export function dateOf(time: Row[string] | undefined): Date {
  return new Date(Math.max(-LATEST_MS, Math.min(LATEST_MS, Number(time) || 0)));
}

/** Carries a statement out: on SQLite at once, so that it is within the transaction that is open just now. */
export function carryOut(connection: SqliteConnection, statement: Statement): Result;
export function carryOut(connection: Connection, statement: Statement): Result | Promise<Result>;
export function carryOut(connection: Connection, { sql, values }: Statement): Result | Promise<Result> {
  if (!isSqlite(connection)) return carryOutOnPostgres(connection, { sql, values });
  const statement = connection.prepare(sql);
  if (sql.startsWith('SELECT')) return { rows: statement.all(...values) as Row[], changes: 0 };
  return { rows: [], changes: Number(statement.run(...values).changes) };
}

async function carryOutOnPostgres(connection: PostgresConnection, { sql, values }: Statement): Promise<Result> {
  let place = 0;
  const { rows, rowCount } = await connection.query(
    sql.replaceAll('?', () => `$${++place}`),
    [...values],
  );
  return { rows: rows as Row[], changes: rowCount ?? 0 };
}
