import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { type RunningProcess, run, temporaryFolder } from '../tools/processes.ts';

/** Creates a database of this release, made larger by some megabytes of random bytes. */
export async function aDatabase(megabytes = 1): Promise<string> {
  const path = join(temporaryFolder(), 'leads.db');
  await openSqliteStore(path).close();
  const database = new DatabaseSync(path, { timeout: 100_000 });
  database.exec(`CREATE TABLE ballast AS WITH RECURSIVE rows (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM rows LIMIT ${megabytes})
    SELECT n, randomblob(1000000) AS bytes FROM rows`);
  database.close();
  return path;
}

interface Options {
  readonly within?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a backup of a database. */
export function beginBackup(
  databaseUrl: string,
  file: string,
  { within = [], env = {} }: Options = {},
): RunningProcess {
  return run('operator/cli.ts', { args: ['backup', file], env: { DATABASE_URL: databaseUrl, ...env }, within });
}

/** Makes a backup and returns the exit status and the output. */
export async function backUp(databaseUrl: string, file: string, options: Options = {}) {
  const running = beginBackup(databaseUrl, file, options);
  return [await running.ended(), running.output()];
}
