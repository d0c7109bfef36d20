import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

/** How often, and with which delay in milliseconds, a database that another writes is tried again. */
const TRIES = 1000;
const RETRY_MS = 5;

/** Text, and a value for each question mark in it. */
type Statement = readonly unknown[];

/**
 * Runs SQL in the file that an address names, as an operator with a shell could: statements with their values, all in
 * one transaction. Returns the rows of each.
 */
export async function runSql(databaseUrl: string, ...statements: readonly Statement[]): Promise<unknown[][]> {
  const file = pathToFileURL(databaseUrl.replace(/^sqlite:/, ''));
  // Opens the file only if it exists.
  file.search = '?mode=rw';
  const database = new DatabaseSync(file);
  try {
    for (let left = TRIES; ; left -= 1) {
      try {
        database.exec('BEGIN IMMEDIATE');
        break;
      } catch (error) {
        if (left === 0) throw error;
        await sleep(RETRY_MS);
      }
    }
    const rows = statements.map(([sql, ...values]) =>
      database.prepare(String(sql)).all(...(values as (string | null)[])),
    );
    database.exec('COMMIT');
    return rows;
  } finally {
    database.close();
  }
}
