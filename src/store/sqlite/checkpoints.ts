import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

/** The number of transactions between two checkpoints. */
const TRANSACTIONS_PER_CHECKPOINT = 64;

/**
 * When, after the start, and how often the log is truncated if it has anything in it; milliseconds. Any process may have
 * erased data and been killed before it truncated the log, or the worker may have ended because the disk was full.
 */
const FIRST_TRUNCATION_MS = 1000;
const TRUNCATION_INTERVAL_MS = 60_000;

/**
 * Checkpoints SQLite's write-ahead log in a worker thread: in a large database, that writes pages all over the file,
 * and commits would wait for it.
 */
export class Checkpoints {
  readonly #path: string;
  #truncation: NodeJS.Timeout;
  #worker: Worker | undefined;
  #transactions = 0;

  constructor(path: string) {
    this.#path = path;
    this.#truncation = this.#truncateIn(FIRST_TRUNCATION_MS);
  }

  /** Counts a committed transaction. */
  committed(): void {
    this.#transactions += 1;
    if (this.#transactions < TRANSACTIONS_PER_CHECKPOINT) return;
    this.#transactions = 0;
    this.#request('checkpoint');
  }

  /** Truncates the log, which may contain data that was just erased. */
  erased(): void {
    this.#request('truncate');
  }

  /** Stops the worker after the checkpoints that it was asked for, and closes its file. */
  async close(): Promise<void> {
    clearTimeout(this.#truncation);
    const worker = this.#worker;
    if (!worker) return;
    worker.ref();
    worker.postMessage('close');
    // Also after an error.
    await new Promise((resolve) => worker.once('exit', resolve));
  }

  #truncateIn(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => {
      const log = statSync(`${this.#path}-wal`, { throwIfNoEntry: false });
      if (log && log.size > 0) this.#request('truncate');
      this.#truncation = this.#truncateIn(TRUNCATION_INTERVAL_MS);
    }, delayMs).unref();
  }

  #request(what: 'checkpoint' | 'truncate'): void {
    this.#worker ??= this.#start();
    this.#worker.postMessage(what);
  }

  #start(): Worker {
    const worker = new Worker(new URL('./checkpoint-worker.ts', import.meta.url), { workerData: this.#path });
    // No write is lost without the worker: SQLite itself checkpoints a long log (`wal_autocheckpoint`).
    worker.on('error', () => {});
    worker.once('exit', () => {
      this.#worker = undefined;
    });
    worker.unref();
    return worker;
  }
}
