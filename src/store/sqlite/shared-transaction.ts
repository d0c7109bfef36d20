import type { DatabaseSync, StatementSync } from 'node:sqlite';

/**
 * A transaction that consecutive reads in one turn of the event loop share, because locking and unlocking costs as much
 * as a read. No request can arrive before it ends, so no request reads a state from before its arrival.
 */
export class SharedTransaction {
  readonly #database: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  #isActive = false;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#begin = database.prepare('BEGIN');
    this.#commit = database.prepare('COMMIT');
  }

  /** Begins the transaction unless one is active; to be called before a read. */
  begin(): void {
    if (this.#isActive || this.#database.isTransaction) return;
    this.#begin.run();
    this.#isActive = true;
    // Runs after all pending microtasks and before the next I/O event.
    process.nextTick(() => this.end());
  }

  /** Ends the transaction; to be called before a transaction that writes. */
  end(): void {
    if (!this.#isActive) return;
    this.#isActive = false;
    // A failed read may have ended it.
    if (this.#database.isOpen && this.#database.isTransaction) this.#commit.run();
  }
}
