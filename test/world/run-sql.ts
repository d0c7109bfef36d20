/**
 * Runs SQL in the file that DATABASE_URL names, as an operator with a shell could: a JSON list of statements with their
 * values, all in one transaction. Prints the rows of each.
 */
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';

const statements: [string, ...(string | number | null)[]][] = JSON.parse(process.argv[2] ?? '[]');
const file = pathToFileURL((process.env.DATABASE_URL ?? '').replace(/^sqlite:/, ''));
// Opens the file only if it exists.
file.search = '?mode=rw';
const database = new DatabaseSync(file, { timeout: 5000 });
database.exec('BEGIN IMMEDIATE');
const rows = statements.map(([sql, ...values]) => database.prepare(sql).all(...values));
database.exec('COMMIT');
database.close();
process.stdout.write(JSON.stringify(rows));
