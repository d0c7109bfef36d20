import { DatabaseSync } from 'node:sqlite';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';

const port = parentPort;
if (!port) throw new Error('this module must run as the worker thread of Checkpoints');
const database = new DatabaseSync(workerData as string, { timeout: 50 });

type Message = 'checkpoint' | 'truncate' | 'close';

/** The delay before truncating the log is retried while it is in use; milliseconds. */
const RETRY_DELAY_MS = 1000;

let retry: NodeJS.Timeout | undefined;

port.on('message', (message: Message) => {
  const messages = new Set([message]);
  // One checkpoint serves all requests that arrived during the last one.
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) messages.add(next.message);
  clearTimeout(retry);
  if (messages.has('close')) {
    database.close();
    port.close();
    return;
  }
  // Passive: neither waits for readers and writers nor blocks them.
  database.exec('PRAGMA wal_checkpoint(PASSIVE)');
  if (messages.has('truncate') || retry) truncate();
});

/** Truncates the log, which may contain erased data. Waits only briefly, because it blocks writers. */
function truncate(): void {
  const isBusy = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy !== 0;
  retry = isBusy ? setTimeout(truncate, RETRY_DELAY_MS) : undefined;
}
