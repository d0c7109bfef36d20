import { OutboxError } from './outbox-error.ts';

/** A column value or statement parameter. */
export type Value = string | number | null;

/** A SQLite connection: a `DatabaseSync` of `node:sqlite`, or a `Database` of better-sqlite3. */
export interface SqliteConnection {
  prepare(sql: string): {
    run(...values: Value[]): { readonly changes: number | bigint };
    all(...values: Value[]): unknown[];
  };
}

/** A PostgreSQL connection: a `Client`, `PoolClient` or `Pool` of `pg`. */
export interface PostgresConnection {
  query(text: string, values?: Value[]): Promise<{ readonly rows: unknown[]; readonly rowCount: number | null }>;
}

/** The latest time of a Date and, negated, the earliest; milliseconds since 1970. */
const LATEST_MS = 8.64e15;

export type Connection = SqliteConnection | PostgresConnection;

/** SQL with a `?` for each value. */
export interface Statement {
  readonly sql: string;
  readonly values: readonly Value[];
}

/** A result row. Drivers return integers as numbers, strings or bigints. */
export type Row = Readonly<Record<string, string | number | bigint | null>>;

/** The result of a statement: the rows read, or the number of rows written. */
export interface Result {
  readonly rows: readonly Row[];
  readonly changes: number;
}

export const isSqlite = (connection: Connection): connection is SqliteConnection => 'prepare' in connection;

/**
 * Returns the idempotency key of a row.
 *
 * @throws OutboxError when the column is not a string: the driver may be configured to return rows in another form
 */
export function keyIn(row: Row): string {
  if (typeof row.idempotency_key === 'string') return row.idempotency_key;
  throw new OutboxError(
    'The idempotency_key of a row is not a string: the driver must return rows as objects with strings.',
  );
}

/** Converts a stored time in milliseconds to the nearest valid Date. */
export function dateOf(time: Row[string] | undefined): Date {
  return new Date(Math.max(-LATEST_MS, Math.min(LATEST_MS, Number(time) || 0)));
}

/** Executes a statement; synchronously on SQLite, so that it is part of the transaction that is open. */
export function carryOut(connection: SqliteConnection, statement: Statement): Result;
export function carryOut(connection: Connection, statement: Statement): Result | Promise<Result>;
export function carryOut(connection: Connection, { sql, values }: Statement): Result | Promise<Result> {
  if (!isSqlite(connection)) return carryOutOnPostgres(connection, { sql, values });
  const statement = dropping(connection.prepare(sql));
  if (sql.startsWith('SELECT')) return { rows: rowsIn(dropping(statement.all?.(...values))), changes: 0 };
  return { rows: [], changes: changesIn(dropping(statement.run?.(...values))?.changes) };
}

/** Returns a driver's value. The promise of an asynchronous driver is not awaited: its failure must not end the process. */
function dropping<T>(value: T): T {
  if (value instanceof Promise) value.catch(() => {});
  return value;
}

async function carryOutOnPostgres(connection: PostgresConnection, { sql, values }: Statement): Promise<Result> {
  let position = 0;
  const result = await connection.query(
    sql.replaceAll('?', () => `$${++position}`),
    [...values],
  );
  return sql.startsWith('SELECT')
    ? { rows: rowsIn(result?.rows), changes: 0 }
    : { rows: [], changes: changesIn(result?.rowCount) };
}

/**
 * Checks a result: a driver that is asynchronous, or has another form, would otherwise seem to have written a lead that it
 * loses.
 */
function rowsIn(rows: unknown): readonly Row[] {
  if (Array.isArray(rows)) return rows;
  throw unsuitable('a list of rows');
}

function changesIn(changes: unknown): number {
  if (typeof changes === 'bigint' || Number.isInteger(changes)) return Number(changes);
  throw unsuitable('the number of changed rows');
}

const unsuitable = (missing: string) =>
  new OutboxError(
    `The database connection has not returned ${missing}, so nothing is certain to be stored: the outbox needs node:sqlite or better-sqlite3, which are synchronous, or pg.`,
  );
