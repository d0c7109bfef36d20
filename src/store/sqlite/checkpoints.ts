import { realpathSync, statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Identities } from './opened-files.ts';

/** Whether the log has any content. SQLite keeps it beside the target of a symbolic link. */
function hasLog(path: string): boolean {
  try {
    return statSync(`${realpathSync(path)}-wal`).size > 0;
  } catch {
    return false;
  }
}

const TRANSACTIONS_PER_CHECKPOINT = 64;

/**
 * The delay after the start, and the interval, for truncating a log with content; milliseconds. Any process may have
 * erased data and been killed before it truncated the log. A full disk may also have ended the worker.
 */
const FIRST_TRUNCATION_MS = 1000;
const TRUNCATION_INTERVAL_MS = 60_000;

/** How long the log must resist truncation before that is reported; milliseconds. */
const LOG_STAYS_MS = 60_000;

/**
 * Checkpoints SQLite's write-ahead log in a worker thread. In a large database, a checkpoint writes pages all over the
 * file, and commits would wait for it.
 *
 * @param identities the identities of the checkpointed files
 * @param logStays called when the log cannot be truncated for a minute, each minute, or at the end
 */
export function createCheckpoints(path: string, identities: Identities, logStays = () => {}) {
  let worker: Worker | undefined;
  let transactions = 0;
  /** Since when the log has resisted truncation, or when that was last reported; by `performance.now()`. */
  let staysSince: number | undefined;

  function request(what: 'checkpoint' | 'truncate'): void {
    worker ??= started();
    worker.postMessage(what);
  }

  function started(): Worker {
    const workerData = { path, identities };
    const worker = new Worker(new URL('./checkpoint-worker.ts', import.meta.url), { workerData });
    // No write is lost without the worker: SQLite itself checkpoints a long log (`wal_autocheckpoint`).
    worker.on('error', () => {});
    worker.on('message', (isTruncated: boolean) => {
      const now = performance.now();
      staysSince = isTruncated ? undefined : (staysSince ?? now);
      if (staysSince === undefined || now < staysSince + LOG_STAYS_MS) return;
      staysSince = now;
      logStays();
    });
    worker.once('exit', ended);
    worker.unref();
    return worker;
  }

  const ended = () => {
    worker = undefined;
  };
  const truncate = () => hasLog(path) && request('truncate');
  const timers = [setTimeout(truncate, FIRST_TRUNCATION_MS), setInterval(truncate, TRUNCATION_INTERVAL_MS)];
  for (const timer of timers) timer.unref();

  return {
    committed(): void {
      transactions = (transactions + 1) % TRANSACTIONS_PER_CHECKPOINT;
      if (transactions === 0) request('checkpoint');
    },

    /** Truncates the log, which may contain data that was just erased. */
    erased: () => request('truncate'),

    /** Stops the worker after its requested checkpoints, and closes its file. */
    async close(): Promise<void> {
      timers.forEach(clearTimeout);
      if (!worker) return;
      worker.ref();
      staysSince = Number.NEGATIVE_INFINITY;
      worker.postMessage('close');
      // Also resolves after an error.
      await new Promise((resolve) => worker?.once('exit', resolve));
    },
  };
}
