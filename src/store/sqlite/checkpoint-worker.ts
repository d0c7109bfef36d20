import { DatabaseSync } from 'node:sqlite';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';

/** How much may be left when a checkpoint is over; pages. */
const MOST_LEFT = 256;

/** How often it is begun again for what came meanwhile: by then each takes much less time than the one before. */
const MOST_PASSES = 4;

const port = parentPort;
if (!port) throw new Error('this file is the thread of Checkpoints');
const database = new DatabaseSync(workerData as string);
// Passive: waits for nobody, and nobody waits for it.
const checkpoint = database.prepare('PRAGMA wal_checkpoint(PASSIVE)');

port.on('message', (message: 'checkpoint' | 'close') => {
  let last = message;
  // What was asked for while the last checkpoint ran, one does for all.
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) last = next.message;
  if (last === 'checkpoint') {
    let moved = 0;
    for (let pass = 0; pass < MOST_PASSES; pass += 1) {
      const before = moved;
      moved = checkpoint.get()?.checkpointed as number;
      if (moved - before <= MOST_LEFT) break;
    }
    port.postMessage('done');
  } else {
    database.close();
    port.close();
  }
});
