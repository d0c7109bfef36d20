import { DatabaseSync } from 'node:sqlite';
import { MIGRATIONS } from './migrations.ts';
import { schemaVersion } from './open-database.ts';

/** What a database file says of itself. */
export interface SqliteState {
  /** How many steps of the schema it has taken, and how many this release knows. */
  readonly schema: number;
  readonly knownSchema: number;
}

/** Looks at a database file without changing anything. @throws Error when it cannot be read, or is no database */
export function examineSqlite(path: string): SqliteState {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    return { schema: schemaVersion(database), knownSchema: MIGRATIONS.length };
  } finally {
    database.close();
  }
}
