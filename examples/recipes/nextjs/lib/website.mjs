import { DatabaseSync } from 'node:sqlite';
import { createOutbox } from 'lead-intake-sdk/outbox';

export const outbox = createOutbox();

let opened;

/** The website's own database. It is opened when it is first asked for: a build of Next.js only loads this file. */
export function openWebsite() {
  opened ??= open();
  return opened;
}

async function open() {
  const database = new DatabaseSync(process.env.WEBSITE_DATABASE ?? 'website.db', { timeout: 5000 });
  // The worker writes while visitors do; data that is erased is overwritten.
  database.exec('PRAGMA journal_mode = WAL; PRAGMA secure_delete = ON');
  await outbox.setUp(database);
  return database;
}
