import { DatabaseSync } from 'node:sqlite';
import { MIGRATIONS } from './migrations.ts';
import { schemaVersion } from './open-database.ts';
import { faultsWithDuplicates } from './unique-indexes.ts';

/** What a database file says of itself. */
export interface SqliteState {
  /** How many steps of the schema it has taken, and how many this release knows. */
  readonly schema: number;
  readonly knownSchema: number;
  /** What is wrong with each index that is not there, or not as it has to be, and which rows stand in its way. */
  readonly indexFaults: readonly string[];
}

/** Looks at a database file without changing anything. @throws Error when it cannot be read, or is no database */
export function examineSqlite(path: string): SqliteState {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const schema = schemaVersion(database);
    const knownSchema = MIGRATIONS.length;
    return { schema, knownSchema, indexFaults: schema === knownSchema ? faultsWithDuplicates(database) : [] };
  } finally {
    database.close();
  }
}
