import { DatabaseSync } from 'node:sqlite';
import { createOutbox } from 'lead-intake-sdk/outbox';

export const outbox = createOutbox();

let opened;

/** Returns the website's own database, opened on first use, because a build of Next.js loads this file too. */
export function openWebsite() {
  opened ??= open();
  return opened;
}

async function open() {
  const database = new DatabaseSync(process.env.WEBSITE_DATABASE ?? 'website.db', { timeout: 5000 });
  // The worker and visitors write concurrently; erased data are overwritten.
  database.exec('PRAGMA journal_mode = WAL; PRAGMA secure_delete = ON');
  await outbox.setUp(database);
  return database;
}
