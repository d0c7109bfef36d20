import { setTimeout as sleep } from 'node:timers/promises';
import { refusalOfCreations } from '../index-faults.ts';
import { INDEXED, type Index, type Indexed, type IndexFault } from './indexes.ts';
import { NotRepeatable } from './server-refusal.ts';

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

/** The unique indexes that every promise relies on. */
export interface Indexes {
  /**
   * To be called before a write that relies on the unique indexes of a collection. Resolves by the last check, and waits
   * for one only if there was none since the connection was made.
   *
   * @throws NotRepeatable when an index was missing, or another one was in its place
   */
  expectValid(...collections: readonly Indexed[]): Promise<void>;
}

/** Checks the indexes once a second, and makes missing ones again. */
export class IndexKeeper implements Indexes {
  readonly #access: IndexAccess;
  /** The last check of each collection; none after a lost connection, and after a check that failed. */
  readonly #checks = new Map<Indexed, Promise<readonly IndexFault[]>>();
  /** Why the last attempt to build an index failed. */
  readonly #buildErrors = new Map<Index, string>();
  #isStarted = false;
  #keeping: Promise<void> | undefined;
  #rebuilding: Promise<void> | undefined;
  #rebuildDelayMs = CHECK_INTERVAL_MS;
  #nextRebuildAt = 0;

  constructor(access: IndexAccess) {
    this.#access = access;
  }

  async expectValid(...collections: readonly Indexed[]): Promise<void> {
    if (!this.#isStarted) throw new NotRepeatable(refusalOfCreations(['the indexes have not been checked yet']));
    const checks = collections.map((collection) => this.#checks.get(collection) ?? this.#check(collection));
    // The other indexes only save time.
    const faults = (await Promise.all(checks)).flat().filter(({ index }) => index.unique);
    if (faults.length > 0) throw new NotRepeatable(refusalOfCreations(faults.map((each) => this.#describe(each))));
  }

  /** To be called when a server is lost, or takes another role: the next one may lack an index. */
  forget(): void {
    this.#checks.clear();
  }

  /** Makes the indexes, and from then on checks them until the signal aborts. Never rejects. */
  async start(signal: AbortSignal): Promise<void> {
    this.#isStarted = true;
    await this.#checkAll();
    this.#keeping = this.#keep(signal);
    await this.#rebuilding;
  }

  /** Resolves when nothing is checked or built any more, after the signal has aborted. */
  async ended(): Promise<void> {
    await this.#keeping;
    await this.#rebuilding;
  }

  async #keep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(CHECK_INTERVAL_MS, undefined, { signal, ref: false }).catch(() => {});
      if (!signal.aborted) await this.#checkAll();
    }
  }

  /** Checks all indexes, and begins to make missing ones again unless that has failed recently. */
  async #checkAll(): Promise<void> {
    try {
      const faults = (await Promise.all(INDEXED.map((collection) => this.#check(collection)))).flat();
      if (faults.length === 0) this.#rebuildDelayMs = CHECK_INTERVAL_MS;
      else if (performance.now() >= this.#nextRebuildAt) this.#rebuilding ??= this.#rebuild(faults);
    } catch {
      // The database does not respond; writes that wait for a check get its error.
    }
  }

  async #check(collection: Indexed): Promise<readonly IndexFault[]> {
    const check = this.#access.check(collection);
    if (!this.#checks.has(collection)) this.#checks.set(collection, check);
    try {
      const faults = await check;
      this.#checks.set(collection, check);
      return faults;
    } catch (error) {
      this.#checks.delete(collection);
      throw error;
    }
  }

  /** May take long; meanwhile the checks continue. */
  async #rebuild(faults: readonly IndexFault[]): Promise<void> {
    try {
      for (const { index } of faults) {
        const error = await this.#access.build(index);
        if (error === undefined) this.#buildErrors.delete(index);
        else this.#buildErrors.set(index, error);
      }
    } catch {
      // The database does not respond.
    }
    this.#nextRebuildAt = performance.now() + this.#rebuildDelayMs;
    this.#rebuildDelayMs = Math.min(this.#rebuildDelayMs * 2, MAX_REBUILD_DELAY_MS);
    await this.#checkAll();
    this.#rebuilding = undefined;
  }

  #describe({ index, fault }: IndexFault): string {
    const error = this.#buildErrors.get(index);
    return error === undefined ? fault : `${fault}, and cannot be built: ${error}`;
  }
}
