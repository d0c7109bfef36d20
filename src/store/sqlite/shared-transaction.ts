import type { DatabaseSync, StatementSync } from 'node:sqlite';

/**
 * Lets reads that follow one another without a turn of the event loop share a transaction: to take and to leave the lock of each
 * costs as much as the read. Nothing new can arrive before it ends, so nobody reads what was true before he asked.
 */
export class SharedTransaction {
  readonly #database: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  #isUnderWay = false;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#begin = database.prepare('BEGIN');
    this.#commit = database.prepare('COMMIT');
  }

  /** To be called before a read. */
  begin(): void {
    if (this.#isUnderWay || this.#database.isTransaction) return;
    this.#begin.run();
    this.#isUnderWay = true;
    // That is when all promises that could be kept are kept, and before the next thing is taken from a socket.
    process.nextTick(() => this.end());
  }

  /** To be called before what has a transaction of its own. */
  end(): void {
    if (!this.#isUnderWay) return;
    this.#isUnderWay = false;
    // A read that failed may have ended it.
    if (this.#database.isOpen && this.#database.isTransaction) this.#commit.run();
  }
}
