import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite';

/** A query that returns rows as arrays. */
export interface ListQuery {
  get(...parameters: SQLInputValue[]): SQLOutputValue[] | undefined;
  all(...parameters: SQLInputValue[]): SQLOutputValue[][];
  iterate(...parameters: SQLInputValue[]): Iterable<SQLOutputValue[]>;
}

/** Prepares a frequent query: the driver creates arrays several times faster than objects. */
export function prepareLists(database: DatabaseSync, sql: string): ListQuery {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true);
  return statement as unknown as ListQuery;
}
