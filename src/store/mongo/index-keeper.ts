import { setTimeout as sleep } from 'node:timers/promises';
import { CoalescedReads } from '../../../common/coalesced-reads.ts';
import { INDEXED, type Index, type Indexed, type IndexFault } from './indexes.ts';

/** The time between two checks of the indexes; milliseconds. */
const CHECK_INTERVAL_MS = 1000;

/** The maximum delay between attempts to build an index, which may read a whole collection; milliseconds. */
const MAX_REBUILD_DELAY_MS = 60_000;

/** Access to the indexes in the database. */
interface IndexAccess {
  /** Checks a collection's indexes; rejects when the database does not respond. */
  check(collection: Indexed): Promise<readonly IndexFault[]>;
  /** Builds an index; returns why that failed, or undefined. */
  build(index: Index): Promise<string | undefined>;
}

/** Whether the unique indexes that every promise relies on are valid. */
export interface Indexes {
  /** Returns what was wrong with a collection's indexes at the last check; undefined: nothing. */
  lastFault(collection: Indexed): string | undefined;
  /**
   * Returns what a check found that began after the call; undefined: nothing. Valid indexes then cover every write
   * before the check, because a unique index cannot be built over duplicates.
   */
  fault(collection: Indexed): Promise<string | undefined>;
}

/** Checks the indexes periodically, and rebuilds missing ones. */
export class IndexKeeper implements Indexes {
  readonly #access: IndexAccess;
  readonly #checks = new CoalescedReads();
  readonly #faults = new Map<Indexed, readonly IndexFault[]>();
  /** Why the last attempt to build an index failed. */
  readonly #buildErrors = new Map<Index, string>();
  #rebuildDelayMs = CHECK_INTERVAL_MS;
  #nextRebuildAt = 0;

  constructor(access: IndexAccess) {
    this.#access = access;
  }

  lastFault(collection: Indexed): string | undefined {
    const faults = this.#faults.get(collection);
    return faults ? this.#describe(faults) : `the indexes of ${collection} have not been checked yet`;
  }

  async fault(collection: Indexed): Promise<string | undefined> {
    return this.#describe(await this.#check(collection));
  }

  /** Repeats `checkAndRebuild` until the signal aborts. Never rejects. */
  async keep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(CHECK_INTERVAL_MS, undefined, { signal, ref: false }).catch(() => {});
      if (!signal.aborted) await this.checkAndRebuild();
    }
  }

  /** Checks all indexes, and rebuilds missing ones unless that has failed recently. Never rejects. */
  async checkAndRebuild(): Promise<void> {
    try {
      const faults = await this.#checkAll();
      if (faults.length === 0) this.#rebuildDelayMs = CHECK_INTERVAL_MS;
      if (faults.length === 0 || performance.now() < this.#nextRebuildAt) return;
      for (const { index } of faults) await this.#build(index);
      await this.#checkAll();
      this.#nextRebuildAt = performance.now() + this.#rebuildDelayMs;
      this.#rebuildDelayMs = Math.min(this.#rebuildDelayMs * 2, MAX_REBUILD_DELAY_MS);
    } catch {
      // The database does not respond; callers of `fault` get the error of their own check.
    }
  }

  async #checkAll(): Promise<readonly IndexFault[]> {
    return (await Promise.all(INDEXED.map((collection) => this.#check(collection)))).flat();
  }

  #check(collection: Indexed): Promise<readonly IndexFault[]> {
    return this.#checks.read(collection, async () => {
      const faults = await this.#access.check(collection);
      this.#faults.set(collection, faults);
      return faults;
    });
  }

  async #build(index: Index): Promise<void> {
    const error = await this.#access.build(index);
    if (error === undefined) this.#buildErrors.delete(index);
    else this.#buildErrors.set(index, error);
  }

  /** Describes the faults of unique indexes; other indexes only save time. */
  #describe(all: readonly IndexFault[]): string | undefined {
    const faults = all.filter(({ index }) => index.unique);
    if (faults.length === 0) return undefined;
    const each = faults.map(({ index, fault }) => {
      const error = this.#buildErrors.get(index);
      return error === undefined ? fault : `${fault}, and cannot be built: ${error}`;
    });
    return each.join('. ');
  }
}
