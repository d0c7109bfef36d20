import type { DatabaseSync } from 'node:sqlite';
import { type StoreObserver, StoreUnavailable } from '../store.ts';

interface PendingWrite<Caller> {
  /** Performs the write in a transaction; may run again after a rollback. Returns what to call once it is durable. */
  readonly perform: () => () => void;
  readonly reject: (error: unknown) => void;
  readonly caller: Caller | undefined;
  /** The indexes that were known to be missing at the request; the write relies on all others. */
  readonly missing: readonly unknown[];
}

/** The indexes that writes rely on. Each transaction checks them. */
interface IndexCheck {
  /** At the last check. */
  readonly missing: readonly unknown[];
  check(): void;
  /** Discards the result of a check in a transaction that was not committed. */
  invalidate(): void;
}

/**
 * Group commit: writes that arrive in one turn of the event loop share a transaction and its wait for the disk. Each
 * resolves after the commit. A failed write does not affect the others. A single write is not delayed.
 */
export class GroupCommit<Caller = undefined> {
  readonly #database: DatabaseSync;
  readonly #committed: () => unknown;
  readonly #observer: StoreObserver<Caller> | undefined;
  readonly #indexes: IndexCheck | undefined;
  #pending: PendingWrite<Caller>[] = [];
  #lastError: unknown = new StoreUnavailable('nothing has been written yet');

  /**
   * @param committed called after every commit
   * @param observer observes every commit
   * @param indexes checked in every transaction
   */
  constructor(
    database: DatabaseSync,
    committed: () => unknown = () => {},
    observer?: StoreObserver<Caller>,
    indexes?: IndexCheck,
  ) {
    this.#database = database;
    this.#committed = committed;
    this.#observer = observer;
    this.#indexes = indexes;
  }

  /** The error of the last transaction, or that there was none yet; undefined: it was committed. */
  get lastError(): unknown {
    return this.#lastError;
  }

  /** Runs a write; resolves with its result once that is durable. */
  write<Result>(body: () => Result): Promise<Result> {
    return new Promise((resolve, reject) => {
      const perform = () => {
        const result = body();
        return () => resolve(result);
      };
      const missing = this.#indexes?.missing ?? [];
      const caller = this.#observer?.caller();
      if (this.#pending.push({ perform, reject, caller, missing }) === 1) setImmediate(() => this.flush());
    });
  }

  /** Commits the pending writes immediately. */
  flush(): void {
    const writes = this.#pending;
    this.#pending = [];
    if (writes.length === 0) return;
    const finish = this.#observer?.commandStarted(
      { system: 'sqlite', name: 'commit', size: writes.length },
      writes.map(({ caller }) => caller),
    );
    try {
      this.#begin();
      const resolveAll = this.#performAll(writes);
      this.#database.exec('COMMIT');
      this.#lastError = undefined;
      finish?.(true);
      for (const resolve of resolveAll) resolve();
      this.#committed();
    } catch (error) {
      finish?.(false);
      this.#lastError = error;
      this.#indexes?.invalidate();
      if (this.#database.isOpen && this.#database.isTransaction) this.#database.exec('ROLLBACK');
      const unavailable = new StoreUnavailable('the commit failed', error);
      for (const { reject } of writes) reject(unavailable);
    }
  }

  #begin(): void {
    this.#database.exec('BEGIN IMMEDIATE');
    // No other process can change the schema from here on.
    this.#indexes?.check();
  }

  /** Writes get a savepoint each only after one has failed: a savepoint costs as much as an insert. */
  #performAll(writes: readonly PendingWrite<Caller>[]): (() => void)[] {
    try {
      return writes.map((write) => this.#perform(write));
    } catch (error) {
      // A full or failing disk may have ended the whole transaction: then no write took effect.
      if (!this.#database.isTransaction) throw error;
      this.#database.exec('ROLLBACK');
      this.#indexes?.invalidate();
      this.#begin();
      return writes.map((write) => this.#performAlone(write));
    }
  }

  #performAlone(write: PendingWrite<Caller>): () => void {
    this.#database.exec('SAVEPOINT one_write');
    try {
      const resolve = this.#perform(write);
      this.#database.exec('RELEASE one_write');
      return resolve;
    } catch (error) {
      if (!this.#database.isTransaction) throw error;
      this.#database.exec('ROLLBACK TO one_write; RELEASE one_write');
      return () => write.reject(error);
    }
  }

  #perform({ perform, reject, missing }: PendingWrite<Caller>): () => void {
    if (this.#indexes?.missing.some((index) => !missing.includes(index))) {
      return () => reject(new StoreUnavailable('an index was dropped before the write'));
    }
    return perform();
  }
}
