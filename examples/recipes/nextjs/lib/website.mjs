import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { createOutbox } from 'lead-intake-sdk/outbox';

/** The outbox. Its table is named after this website, because another website in the same database would send its leads. */
export const outbox = createOutbox({ table: 'example_com_leads' });

/** The file of the database, by default in the folder above this one. */
const FILE = process.env.WEBSITE_DATABASE ?? join(dirname(fileURLToPath(import.meta.url)), '..', 'website.db');

let opened;

/**
 * Returns the website's own database. It is opened on first use, because a build of Next.js loads this file, too. After a failure, such as a
 * locked file, the next use tries again.
 */
export function openWebsite() {
  opened ??= open().catch((error) => {
    opened = undefined;
    throw error;
  });
  return opened;
}

async function open() {
  const database = new DatabaseSync(FILE, { timeout: 5000 });
  try {
    // WAL: the worker and visitors can write while others read. secure_delete: erased data is overwritten.
    database.exec('PRAGMA journal_mode = WAL; PRAGMA secure_delete = ON');
    await outbox.setUp(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}
