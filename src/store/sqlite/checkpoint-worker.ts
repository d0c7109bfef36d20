import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { type Identities, replacedPath } from './opened-files.ts';

const port = parentPort;
if (!port) throw new Error('this module must run as the worker thread of createCheckpoints');
const { path, identities } = workerData as { readonly path: string; readonly identities: Identities };
const database = new DatabaseSync(path, { timeout: 50 });
// A checkpoint would move the log into another database.
if (replacedPath(identities) !== undefined) throw new Error('the database file was replaced');

type Message = 'checkpoint' | 'truncate' | 'close';

/** The delay before retrying to truncate a log in use; milliseconds. */
const RETRY_DELAY_MS = 1000;

/** The number of retries to truncate the log before closing the file, and their delay in milliseconds. */
const LAST_RETRIES = 20;
const LAST_RETRY_DELAY_MS = 100;

let retry: NodeJS.Timeout | undefined;

port.on('message', async (message: Message) => {
  const messages = new Set([message]);
  // One checkpoint serves all requests that arrived during the last one.
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) messages.add(next.message);
  const isTruncationDue = messages.has('truncate') || retry !== undefined;
  clearTimeout(retry);
  // Passive: neither waits for readers and writers nor blocks them.
  database.exec('PRAGMA wal_checkpoint(PASSIVE)');
  if (messages.has('close')) {
    if (isTruncationDue) port.postMessage(await truncateAtLast());
    database.close();
    port.close();
  } else if (isTruncationDue) truncate();
});

function truncate(): void {
  const isDone = truncated();
  port?.postMessage(isDone);
  retry = isDone ? undefined : setTimeout(truncate, RETRY_DELAY_MS);
}

/** Retries for a while. After that, another process that uses the file truncates the log; without one, SQLite removes the log. */
async function truncateAtLast(): Promise<boolean> {
  for (let left = LAST_RETRIES; left > 0; left -= 1) {
    if (truncated()) return true;
    await sleep(LAST_RETRY_DELAY_MS);
  }
  return false;
}

/** Truncates the log, which may contain erased data, unless it is in use. Waits only briefly, because it blocks writers. */
const truncated = (): boolean => database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy === 0;
