import type { DatabaseSync } from 'node:sqlite';
import { type StoreObserver, StoreUnavailable } from '../store.ts';

interface PendingWrite<Caller> {
  /** Does the write inside the transaction, perhaps once more after that was undone; gives what answers it once it is durable. */
  readonly perform: () => () => void;
  readonly reject: (error: unknown) => void;
  /** For whom it is written. */
  readonly caller: Caller | undefined;
  /** The indexes that it knew to be missing when it was asked for: it relies on all others. */
  readonly missing: readonly unknown[];
}

/** What the writes rely on, and a transaction has to look at. */
interface Reliance {
  /** At the last look. */
  readonly missing: readonly unknown[];
  look(): void;
  /** What a look saw in a transaction that was not committed does not count. */
  forget(): void;
}

/**
 * Lets the writes that arrive in one turn of the event loop share a transaction, and so its wait for the disk. Each is answered
 * after the commit, and one that fails takes none of its neighbours along. A lone write waits for nobody.
 */
export class GroupCommit<Caller = undefined> {
  readonly #database: DatabaseSync;
  readonly #committed: () => unknown;
  readonly #observer: StoreObserver<Caller> | undefined;
  readonly #indexes: Reliance | undefined;
  #pending: PendingWrite<Caller>[] = [];
  #doubt: unknown = new StoreUnavailable('nothing was written yet');

  /**
   * @param committed is called after every commit
   * @param observer is told of every commit
   * @param indexes are looked at in every transaction
   */
  constructor(
    database: DatabaseSync,
    committed: () => unknown = () => {},
    observer?: StoreObserver<Caller>,
    indexes?: Reliance,
  ) {
    this.#database = database;
    this.#committed = committed;
    this.#observer = observer;
    this.#indexes = indexes;
  }

  /** Why a write may fail now: the last transaction did, or there was none yet. Undefined when the last one was committed. */
  get doubt(): unknown {
    return this.#doubt;
  }

  /** Runs a write; resolves with what it gave, when that is durable. */
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

  /** Commits what is waiting, now. */
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
      const answers = this.#performAll(writes);
      this.#database.exec('COMMIT');
      this.#doubt = undefined;
      finish?.(true);
      for (const answer of answers) answer();
      this.#committed();
    } catch (error) {
      finish?.(false);
      this.#doubt = error;
      this.#indexes?.forget();
      if (this.#database.isOpen && this.#database.isTransaction) this.#database.exec('ROLLBACK');
      const unavailable = new StoreUnavailable('the database did not take the writes', error);
      for (const { reject } of writes) reject(unavailable);
    }
  }

  #begin(): void {
    this.#database.exec('BEGIN IMMEDIATE');
    // From here on nobody else changes them.
    this.#indexes?.look();
  }

  /** Hardly any write fails, and a savepoint costs as much as an insert: they get one each only once one has failed. */
  #performAll(writes: readonly PendingWrite<Caller>[]): (() => void)[] {
    try {
      return writes.map((write) => this.#perform(write));
    } catch (error) {
      // A full or failing disk may have ended the whole transaction: then nobody's write is there.
      if (!this.#database.isTransaction) throw error;
      this.#database.exec('ROLLBACK');
      this.#indexes?.forget();
      this.#begin();
      return writes.map((write) => this.#performAlone(write));
    }
  }

  #performAlone(write: PendingWrite<Caller>): () => void {
    this.#database.exec('SAVEPOINT one_write');
    try {
      const answer = this.#perform(write);
      this.#database.exec('RELEASE one_write');
      return answer;
    } catch (error) {
      if (!this.#database.isTransaction) throw error;
      this.#database.exec('ROLLBACK TO one_write; RELEASE one_write');
      return () => write.reject(error);
    }
  }

  #perform({ perform, reject, missing }: PendingWrite<Caller>): () => void {
    if (this.#indexes?.missing.some((index) => !missing.includes(index))) {
      return () => reject(new StoreUnavailable('an index was lost before it was written'));
    }
    return perform();
  }
}
