import { Worker } from 'node:worker_threads';

/** How many transactions are written before their pages are moved from the log into the database. */
const TRANSACTIONS_PER_CHECKPOINT = 256;

/**
 * Moves what was committed from SQLite's write-ahead log into the database file, in a thread of its own: with a large
 * database that means writing pages all over the file, and whoever commits would wait for it. Only the few pages that came
 * meanwhile are moved by whoever commits: then the log begins anew, and what is written over syncs twice as fast as what
 * makes a file longer.
 */
export class Checkpoints {
  readonly #path: string;
  readonly #moveRest: () => void;
  #worker: Worker | undefined;
  #transactions = 0;

  /** @param moveRest moves what is left, between two transactions */
  constructor(path: string, moveRest: () => void) {
    this.#path = path;
    this.#moveRest = moveRest;
  }

  /** Says that a transaction was committed. */
  committed(): void {
    this.#transactions += 1;
    if (this.#transactions < TRANSACTIONS_PER_CHECKPOINT) return;
    this.#transactions = 0;
    this.#worker ??= this.#start();
    this.#worker.postMessage('checkpoint');
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

  #finish(): void {
    try {
      this.#moveRest();
    } catch {
      // It stays in the log, for the next checkpoint; whoever commits learns what is wrong with the disk.
    }
  }

  #start(): Worker {
    const worker = new Worker(new URL('./checkpoint-worker.ts', import.meta.url), { workerData: this.#path });
    // Nothing is lost without the thread: SQLite itself moves the pages when the log has grown long.
    worker.on('error', () => {});
    worker.on('message', () => this.#finish());
    worker.once('exit', () => {
      this.#worker = undefined;
    });
    worker.unref();
    return worker;
  }
}
