import type { Statement } from './commands.ts';
import { type Change, Data } from './data.ts';

/** An entry of the log. A new primary begins with one that changes nothing. */
export interface Entry {
  readonly term: number;
  /** Its position in the cluster's time: seconds, and a number within the second. */
  readonly time: bigint;
  readonly change: Change | undefined;
  readonly statement: Statement | undefined;
}

/** The data that survives when the process of a member is killed. */
export class Disk {
  term = 0;
  /** The member that it voted for in its term. */
  votedFor: number | undefined;
  /** The number of entries on the disk; later ones are lost with the process. */
  synced = 0;
  readonly log: Entry[] = [];
}

/** The state of a member, as of the last applied entry of its log; only a primary needs it. */
export class AppliedLog {
  readonly data = new Data();
  readonly #statements = new Map<string, Statement>();
  #applied = 0;

  /** Applies the remaining entries. */
  catchUp(log: readonly Entry[]): void {
    for (; this.#applied < log.length; this.#applied += 1) {
      const { change, statement } = log[this.#applied] as Entry;
      if (change) this.data.apply(this.#applied + 1, change);
      if (statement) this.#statements.set(`${statement.transaction} ${statement.id}`, statement);
    }
  }

  statement(transaction: string, id: number): Statement | undefined {
    return this.#statements.get(`${transaction} ${id}`);
  }
}
