import { Worker } from 'node:worker_threads';

/** How many transactions are written before their pages are moved from the log into the database. */
const TRANSACTIONS_PER_CHECKPOINT = 64;

/**
 * Moves what was committed from SQLite's write-ahead log into the database file, in a thread of its own: with a large
 * database that means writing pages all over the file, and whoever commits would wait for it.
 */
export class Checkpoints {
  readonly #path: string;
  #worker: Worker | undefined;
  #transactions = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Says that a transaction was committed. */
  committed(): void {
    this.#transactions += 1;
    if (this.#transactions < TRANSACTIONS_PER_CHECKPOINT) return;
    this.#transactions = 0;
    this.#worker ??= this.#start();
    this.#worker.postMessage('checkpoint');
  }

  /** Says that something was erased: from the log it goes when that is begun anew. */
  erased(): void {
    this.#worker ??= this.#start();
    this.#worker.postMessage('begin anew');
  }

  /** Ends after the checkpoint under way, and lets go of the file. */
  async close(): Promise<void> {
    const worker = this.#worker;
    if (!worker) return;
    worker.ref();
    worker.postMessage('close');
    // However it ends: by an error, too.
    await new Promise((resolve) => worker.once('exit', resolve));
  }

  #start(): Worker {
    const worker = new Worker(new URL('./checkpoint-worker.ts', import.meta.url), { workerData: this.#path });
    // Nothing is lost without the thread: SQLite itself moves the pages when the log has grown long.
    worker.on('error', () => {});
    worker.once('exit', () => {
      this.#worker = undefined;
    });
    worker.unref();
    return worker;
  }
}
