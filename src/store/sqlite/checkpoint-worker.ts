import { DatabaseSync } from 'node:sqlite';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';

const port = parentPort;
if (!port) throw new Error('this file is the thread of Checkpoints');
const database = new DatabaseSync(workerData as string, { timeout: 50 });

type Message = 'checkpoint' | 'begin anew' | 'close';

/** How soon it is tried again to begin the log anew while others read or write; milliseconds. */
const TRY_AGAIN_MS = 1000;

let retry: NodeJS.Timeout | undefined;

port.on('message', (message: Message) => {
  const asked = new Set([message]);
  // What was asked for while the last checkpoint ran, one does for all.
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) asked.add(next.message);
  clearTimeout(retry);
  if (asked.has('close')) {
    database.close();
    port.close();
    return;
  }
  // Passive: waits for nobody, and nobody waits for it.
  database.exec('PRAGMA wal_checkpoint(PASSIVE)');
  if (asked.has('begin anew') || retry) beginAnew();
});

/** Cuts the log off, with what it has of what was erased. Tries for a moment only: whoever writes waits meanwhile. */
function beginAnew(): void {
  const isBusy = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy !== 0;
  retry = isBusy ? setTimeout(beginAnew, TRY_AGAIN_MS) : undefined;
}
