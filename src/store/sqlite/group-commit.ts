import type { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { SQLITE_BUSY_MS, STORE_CALL_MS } from '../../../common/deadlines.ts';
import { assert, BrokenInvariant } from '../../../common/invariants.ts';
import { StoreUnavailable } from '../port/faults.ts';
import type { StoreObserver } from '../port/listeners.ts';

/** The maximum number of writes that wait for another process's write lock; further ones are refused immediately. */
export const MAX_WAITING_WRITES = 2048;

interface PendingWrite {
  /** Performs the write in a transaction; may run again after a rollback. Returns a function to call once it is durable. */
  readonly perform: () => () => void;
  readonly reject: (error: unknown) => void;
  /** Settles with the write. */
  readonly settled: Promise<unknown>;
  /** When the write is refused if it still waits for a lock; by `performance.now()`. */
  readonly deadline: number;
}

/**
 * Group commit: writes of one turn of the event loop share a transaction, and its wait for the disk. Each resolves
 * after the commit. A failed write does not affect the others. A single write is not delayed.
 *
 * While another process holds the write lock, writes wait in order until their deadlines, without blocking the event
 * loop. SQLite's own wait would block it, and with it every read, ping and health check.
 */
export class GroupCommit {
  readonly #database: DatabaseSync;
  readonly #committed: () => unknown;
  readonly #observer: StoreObserver | undefined;
  #pending: PendingWrite[] = [];
  /** The next attempt, while another process holds the write lock. */
  #retry: NodeJS.Timeout | undefined;
  #attempts = 0;
  #lastError: unknown = new StoreUnavailable('nothing has been written yet');

  /** @param committed called after every commit, before any caller learns of it. If it throws, the commit's outcome is unknown */
  constructor(database: DatabaseSync, committed: () => unknown = () => {}, observer?: StoreObserver) {
    this.#database = database;
    this.#committed = committed;
    this.#observer = observer;
  }

  /** The error of the last transaction, or an error before the first; undefined: the last one was committed. */
  get lastError(): unknown {
    return this.#lastError;
  }

  /**
   * Runs a write; resolves with its result once the write is durable.
   *
   * @param waitMs how long the write may wait for another process's lock; after that, nothing is written
   */
  write<Result>(body: () => Result, waitMs: number = STORE_CALL_MS): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    if (this.#retry && this.#pending.length >= MAX_WAITING_WRITES) {
      reject(new StoreUnavailable('too many writes wait for the lock of another process: nothing was written'));
      return promise;
    }
    const perform = () => {
      const result = body();
      return () => resolve(result);
    };
    this.#pending.push({ perform, reject, settled: promise, deadline: performance.now() + waitMs });
    // Later writes join the first one's attempt.
    if (this.#pending.length === 1) setImmediate(() => this.#flush());
    return promise;
  }

  async settled(): Promise<void> {
    this.#flush();
    await Promise.allSettled(this.#pending.map(({ settled }) => settled));
  }

  #flush(): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    const writes = this.#pending;
    this.#pending = [];
    if (writes.length === 0) return;
    let finish: ((isDone: boolean) => void) | undefined;
    try {
      assert(!this.#database.isTransaction, 'no_transaction_left_open');
      this.#database.exec('BEGIN IMMEDIATE');
      finish = this.#observer?.({ name: 'commit', size: writes.length });
      const resolveAll = this.#performAll(writes);
      this.#database.exec('COMMIT');
      assert(!this.#database.isTransaction, 'no_transaction_left_open');
      this.#committed();
      this.#lastError = undefined;
      this.#attempts = 0;
      finish?.(true);
      for (const resolve of resolveAll) resolve();
    } catch (error) {
      finish?.(false);
      if (this.#database.isOpen && this.#database.isTransaction) this.#database.exec('ROLLBACK');
      if (isLocked(error)) this.#waitForLock(writes, error);
      else this.#refuse(writes, 'the commit failed', error);
    }
  }

  /** Refuses the writes whose deadlines have passed, and schedules a retry of the others. */
  #waitForLock(writes: PendingWrite[], error: unknown): void {
    const now = performance.now();
    const late = writes.filter(({ deadline }) => deadline <= now);
    if (late.length > 0) {
      this.#observer?.({ name: 'commit', size: late.length })(false);
      this.#refuse(late, 'another process holds the write lock, and nothing was written', error);
    }
    this.#pending = late.length === 0 ? writes : writes.filter(({ deadline }) => deadline > now);
    if (this.#pending.length === 0) return;
    const untilDeadline = Math.min(...this.#pending.map(({ deadline }) => deadline)) - now;
    this.#retry = setTimeout(() => this.#flush(), Math.min(lockRetryMs(this.#attempts), untilDeadline));
    this.#attempts += 1;
  }

  #refuse(writes: readonly PendingWrite[], message: string, cause: unknown): void {
    this.#lastError = cause;
    const error = cause instanceof BrokenInvariant ? cause : new StoreUnavailable(message, cause);
    for (const { reject } of writes) reject(error);
  }

  /** Writes get their own savepoints only after one has failed, because a savepoint costs as much as an insert. */
  #performAll(writes: readonly PendingWrite[]): (() => void)[] {
    try {
      return writes.map(({ perform }) => perform());
    } catch (error) {
      // A full or failing disk may have ended the whole transaction. No write took effect then.
      if (!this.#database.isTransaction) throw error;
      this.#database.exec('ROLLBACK; BEGIN IMMEDIATE');
      return writes.map((write) => this.#performAlone(write));
    }
  }

  #performAlone(write: PendingWrite): () => void {
    this.#database.exec('SAVEPOINT one_write');
    try {
      const resolve = write.perform();
      this.#database.exec('RELEASE one_write');
      return resolve;
    } catch (error) {
      if (!this.#database.isTransaction) throw error;
      this.#database.exec('ROLLBACK TO one_write; RELEASE one_write');
      return () => write.reject(error);
    }
  }
}

/**
 * A transaction that consecutive reads in one turn of the event loop share, because locking and unlocking costs as much
 * as a read. No request can arrive before it ends, so no request reads a state from before its arrival.
 */
export function sharedTransaction(database: DatabaseSync) {
  // Reads have nothing to commit, and a commit fails if the file is damaged.
  const [beginning, ending] = [database.prepare('BEGIN'), database.prepare('ROLLBACK')];
  let isActive = false;
  let count = 0;

  /** Ends the transaction. Must be called before a transaction that writes. */
  function end(): void {
    if (!isActive) return;
    isActive = false;
    // A failed read may have ended it.
    if (database.isOpen && database.isTransaction) ending.run();
  }

  /** Begins the transaction unless one is active. Must be called before a read. */
  function begin(): void {
    if (isActive || database.isTransaction) return;
    beginning.run();
    isActive = true;
    count += 1;
    // Runs after all pending microtasks and before the next I/O event.
    process.nextTick(end);
  }

  /** The number of transactions begun so far. A transaction sees no later commit of another connection. */
  return { begin, end, count: () => count };
}

const MAX_RETRY_MS = 25;

const lockRetryMs = (attempts: number): number => Math.min(2 ** attempts, MAX_RETRY_MS);

/**
 * Retries a call whose reads meet a lock, for example while a process recovers the log after another one was killed.
 * Writes wait in GroupCommit.
 *
 * @throws the last error when the call has taken STORE_CALL_MS
 */
export async function repeatWhileLocked<Result>(call: () => Promise<Result>): Promise<Result> {
  const giveUp = performance.now() + STORE_CALL_MS;
  for (let attempts = 0; ; attempts += 1) {
    try {
      return await call();
    } catch (error) {
      if (!isLocked(error) || performance.now() > giveUp) throw error;
    }
    await sleep(lockRetryMs(attempts));
  }
}

/**
 * Retries while another process holds a lock, without returning to the event loop. Only for use before calls are served.
 *
 * @throws the last error after SQLITE_BUSY_MS
 */
export function untilUnlocked<Result>(attempt: () => Result): Result {
  const giveUp = performance.now() + SQLITE_BUSY_MS;
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (!isLocked(error) || performance.now() > giveUp) throw error;
    }
    // Jitter for processes that start together.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, MAX_RETRY_MS * Math.random());
  }
}

/** Whether a statement failed because another process holds a lock. */
export const isLocked = (error: unknown): boolean => readResultCode(error) === 5;

/** Returns the primary result code of a SQLite error: the lowest byte of an extended one; undefined for other errors. */
export function readResultCode(error: unknown): number | undefined {
  const { errcode } = Object(error) as { errcode?: number };
  return errcode === undefined ? undefined : errcode & 0xff;
}
