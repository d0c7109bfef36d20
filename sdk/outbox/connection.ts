import { OutboxError } from './outbox-error.ts';

/** A column value or statement parameter. */
export type Value = string | number | null;

/** A SQLite connection: a `DatabaseSync` of `node:sqlite`, or a `Database` of better-sqlite3. */
export interface SqliteConnection {
  prepare(sql: string): {
    // The outbox passes Values. The type is unknown, because better-sqlite3 declares other types.
    run(...values: unknown[]): { readonly changes: number | bigint };
    all(...values: unknown[]): unknown[];
  };
}

/** A PostgreSQL connection: a `Client`, `PoolClient` or `Pool` of `pg`. */
export interface PostgresConnection {
  query(text: string, values?: Value[]): Promise<{ readonly rows: unknown[]; readonly rowCount: number | null }>;
}

/** The beginning of year 1 and the end of year 9999, which all languages can represent; milliseconds since 1970. */
const [EARLIEST_MS, LATEST_MS] = [-62_135_596_800_000, 253_402_300_799_999];

export type Connection = SqliteConnection | PostgresConnection;

/** SQL with a `?` for each value. */
export interface Statement {
  readonly sql: string;
  readonly values: readonly Value[];
}

/** A result row. Drivers return integers as numbers, strings or bigints. */
export type Row = Readonly<Record<string, string | number | bigint | Uint8Array | null>>;

/** The result of a statement: the rows read, or the number of rows written. */
export interface Result {
  readonly rows: readonly Row[];
  readonly changes: number;
}

/** @throws TypeError when it is not a connection, but a client, for instance */
export function checkedConnection<C extends Connection>(connection: C): C {
  const { prepare, query } = Object(connection);
  if (typeof prepare === 'function' || typeof query === 'function') return connection;
  throw new TypeError('The first argument must be a connection of node:sqlite, better-sqlite3 or pg.');
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
export function toDate(time: Row[string] | undefined): Date {
  return new Date(Math.max(EARLIEST_MS, Math.min(LATEST_MS, Number(time) || 0)));
}

/** Reads `capture` as bytes on SQLite, which may store text that is not UTF-8: drivers would replace parts of it. */
export const captureColumn = (connection: Connection): string =>
  isSqlite(connection) ? 'CAST(capture AS BLOB) AS capture' : 'capture';

/** @throws OutboxError when a transaction is open, whose rollback would undo the outcomes of a pass */
export async function requireNoTransaction(connection: Connection): Promise<void> {
  const isOpen = isSqlite(connection) ? !canBegin(connection) : await isInTransaction(connection);
  if (isOpen) throw new OutboxError('A transaction is open on this connection: a worker needs one of its own.');
}

function canBegin(connection: SqliteConnection): boolean {
  try {
    carryOut(connection, { sql: 'BEGIN', values: [] });
  } catch (error) {
    if (/within a transaction/.test(String(error))) return false;
    throw error;
  }
  carryOut(connection, { sql: 'ROLLBACK', values: [] });
  return true;
}

/** Whether a transaction is open: `now()` is then the time of an earlier statement. */
async function isInTransaction(connection: PostgresConnection): Promise<boolean> {
  const sql = 'SELECT CASE WHEN now() = statement_timestamp() THEN 0 ELSE 1 END AS is_open';
  return Number((await carryOutOnPostgres(connection, { sql, values: [] })).rows[0]?.is_open) === 1;
}

/** Executes a statement; synchronously on SQLite, so that it is part of the transaction that is open. */
export function carryOut(connection: SqliteConnection, statement: Statement): Result;
export function carryOut(connection: Connection, statement: Statement): Result | Promise<Result>;
export function carryOut(connection: Connection, { sql, values }: Statement): Result | Promise<Result> {
  if (!isSqlite(connection)) return carryOutOnPostgres(connection, { sql, values }).catch(explain);
  try {
    return carryOutOnSqlite(connection, { sql, values });
  } catch (error) {
    return explain(error);
  }
}

function carryOutOnSqlite(connection: SqliteConnection, { sql, values }: Statement): Result {
  const statement = dropping(connection.prepare(sql));
  if (sql.startsWith('SELECT')) return { rows: rowsIn(dropping(statement.all?.(...values))), changes: 0 };
  return { rows: [], changes: changesIn(dropping(statement.run?.(...values))?.changes) };
}

/** The SQLSTATE of PostgreSQL for a table that does not exist. */
const UNDEFINED_TABLE = '42P01';

/** @throws OutboxError when a table is missing; otherwise the database's error */
function explain(error: unknown): never {
  const { code, message } = Object(error);
  if (code !== UNDEFINED_TABLE && !/no such table/.test(message)) throw error;
  throw new OutboxError(
    'The table of the outbox does not exist: call setUp once, or run the statements of setUpSql, and compare the name of the table.',
    { cause: error },
  );
}

/** Returns a driver's value. If an asynchronous driver has returned a promise, its failure must not end the process. */
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
 * Returns the rows of a result after checking its form. Otherwise an asynchronous or unsupported driver could lose a lead
 * that seems stored.
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
