import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite';

/** A query whose rows are lists of their columns. */
export interface ListQuery {
  get(...parameters: SQLInputValue[]): SQLOutputValue[] | undefined;
  all(...parameters: SQLInputValue[]): SQLOutputValue[][];
}

/** Prepares a query that is asked often: the driver makes lists several times as fast as objects. */
export function prepareLists(database: DatabaseSync, sql: string): ListQuery {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true);
  return statement as unknown as ListQuery;
}
