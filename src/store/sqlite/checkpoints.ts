import { Worker } from 'node:worker_threads';

/** The number of transactions between two checkpoints. */
const TRANSACTIONS_PER_CHECKPOINT = 64;

/**
 * Checkpoints SQLite's write-ahead log in a worker thread: in a large database, that writes pages all over the file,
 * and commits would wait for it.
 */
export class Checkpoints {
  readonly #path: string;
  #worker: Worker | undefined;
  #transactions = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Counts a committed transaction. */
  committed(): void {
    this.#transactions += 1;
    if (this.#transactions < TRANSACTIONS_PER_CHECKPOINT) return;
    this.#transactions = 0;
    this.#worker ??= this.#start();
    this.#worker.postMessage('checkpoint');
  }

  /** Truncates the log, which may contain data that was just erased. */
  erased(): void {
    this.#worker ??= this.#start();
    this.#worker.postMessage('truncate');
  }

  /** Stops the worker after its current checkpoint, and closes its file. */
  async close(): Promise<void> {
    const worker = this.#worker;
    if (!worker) return;
    worker.ref();
    worker.postMessage('close');
    // Also after an error.
    await new Promise((resolve) => worker.once('exit', resolve));
  }

  #start(): Worker {
    const worker = new Worker(new URL('./checkpoint-worker.ts', import.meta.url), { workerData: this.#path });
    // Nothing is lost without the worker: SQLite itself checkpoints a long log (`wal_autocheckpoint`).
    worker.on('error', () => {});
    worker.once('exit', () => {
      this.#worker = undefined;
    });
    worker.unref();
    return worker;
  }
}
