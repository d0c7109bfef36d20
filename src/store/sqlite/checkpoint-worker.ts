import { DatabaseSync } from 'node:sqlite';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';

const port = parentPort;
if (!port) throw new Error('this file is the thread of Checkpoints');
const database = new DatabaseSync(workerData as string);

port.on('message', (message: 'checkpoint' | 'close') => {
  let last = message;
  // What was asked for while the last checkpoint ran, one does for all.
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) last = next.message;
  // Passive: waits for nobody, and nobody waits for it.
  if (last === 'checkpoint') database.exec('PRAGMA wal_checkpoint(PASSIVE)');
  else {
    database.close();
    port.close();
  }
});
