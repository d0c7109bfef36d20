import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { createOutbox } from 'lead-intake-sdk/outbox';

/** The table is named after this website: another one in the same database would send its leads. */
export const outbox = createOutbox({ table: 'example_com_leads' });

/** Next to this folder, whichever one a command is run in. */
const FILE = process.env.WEBSITE_DATABASE ?? join(dirname(fileURLToPath(import.meta.url)), '..', 'website.db');

let opened;

/**
 * Returns the website's own database, opened on first use, because a build of Next.js loads this file too. What has failed, as for a locked
 * file, is tried again on next use.
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
    // The worker and visitors write concurrently; erased data are overwritten.
    database.exec('PRAGMA journal_mode = WAL; PRAGMA secure_delete = ON');
    await outbox.setUp(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}
