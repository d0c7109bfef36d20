import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';

/** The delay after which a database that another writes is tried again; milliseconds. */
const RETRY_MS = 5;

/** Runs SQL in a file, as an operator with a shell could: statements with their values in one transaction. Returns the rows of each. */
export async function runSql(
  databaseUrl: string,
  ...statements: readonly (readonly unknown[])[]
): Promise<unknown[][]> {
  const database = new DatabaseSync(databaseUrl.replace(/^sqlite:/, ''));
  try {
    for (let isBusy = true; isBusy; ) {
      try {
        database.exec('BEGIN IMMEDIATE');
        isBusy = false;
      } catch {
        await sleep(RETRY_MS);
      }
    }
    const rows = statements.map(([sql, ...values]) => database.prepare(`${sql}`).all(...(values as string[])));
    database.exec('COMMIT');
    return rows;
  } finally {
    database.close();
  }
}
