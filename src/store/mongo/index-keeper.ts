import { setTimeout as sleep } from 'node:timers/promises';
import { CoalescedReads } from '../../../common/coalesced-reads.ts';
import { INDEXED, type Index, type Indexed, type IndexFault } from './indexes.ts';

/** How often the indexes are looked at while nobody creates anything; milliseconds. */
const CHECK_INTERVAL_MS = 1000;

/** The longest pause between two attempts to make an index; milliseconds. Each may read a whole collection. */
const REBUILD_DELAY_MS = 60_000;

/** How the keeper gets at the indexes. */
interface Hands {
  /** Looks at a collection's indexes; rejects when the database does not answer. */
  look(collection: Indexed): Promise<readonly IndexFault[]>;
  /** Makes an index; gives why it could not be made, if so. */
  make(index: Index): Promise<string | undefined>;
}

/** What may rely on the indexes, and when. */
export interface Indexes {
  /** What was wrong with a collection's indexes at the last look; undefined: nothing. */
  lastFault(collection: Indexed): string | undefined;
  /**
   * What is wrong with them now: gives what a look found that began after the call. One that finds nothing wrong vouches for
   * all that was written before it, because no unique index stands on two documents of which it allows one.
   */
  fault(collection: Indexed): Promise<string | undefined>;
}

/** Knows whether the indexes stand that every promise rests on, and makes those that are missing, again and again. */
export class IndexKeeper implements Indexes {
  readonly #hands: Hands;
  readonly #looks = new CoalescedReads();
  readonly #faults = new Map<Indexed, readonly IndexFault[]>();
  /** Why an index could not be made. */
  readonly #hindrances = new Map<Index, string>();
  #pauseMs = CHECK_INTERVAL_MS;
  #makeAgainAt = 0;

  constructor(hands: Hands) {
    this.#hands = hands;
  }

  lastFault(collection: Indexed): string | undefined {
    const faults = this.#faults.get(collection);
    return faults ? this.#says(faults) : `nobody has seen yet what indexes ${collection} has`;
  }

  async fault(collection: Indexed): Promise<string | undefined> {
    return this.#says(await this.#look(collection));
  }

  /** Looks from time to time, and makes what is missing, until the signal. Never rejects. */
  async keep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(CHECK_INTERVAL_MS, undefined, { signal, ref: false }).catch(() => {});
      if (!signal.aborted) await this.see();
    }
  }

  /** Looks once, and makes what is missing unless that has just failed. Never rejects. */
  async see(): Promise<void> {
    try {
      const faults = await this.#lookAtAll();
      if (faults.length === 0) this.#pauseMs = CHECK_INTERVAL_MS;
      if (faults.length === 0 || performance.now() < this.#makeAgainAt) return;
      for (const { index } of faults) await this.#make(index);
      await this.#lookAtAll();
      this.#makeAgainAt = performance.now() + this.#pauseMs;
      this.#pauseMs = Math.min(this.#pauseMs * 2, REBUILD_DELAY_MS);
    } catch {
      // The database does not answer: whoever asks for a look of their own is told.
    }
  }

  async #lookAtAll(): Promise<readonly IndexFault[]> {
    return (await Promise.all(INDEXED.map((collection) => this.#look(collection)))).flat();
  }

  #look(collection: Indexed): Promise<readonly IndexFault[]> {
    return this.#looks.read(collection, async () => {
      const faults = await this.#hands.look(collection);
      this.#faults.set(collection, faults);
      return faults;
    });
  }

  async #make(index: Index): Promise<void> {
    const hindrance = await this.#hands.make(index);
    if (hindrance === undefined) this.#hindrances.delete(index);
    else this.#hindrances.set(index, hindrance);
  }

  /** Where an index that only saves time is missing, nothing else is. */
  #says(all: readonly IndexFault[]): string | undefined {
    const faults = all.filter(({ index }) => index.unique);
    if (faults.length === 0) return undefined;
    const each = faults.map(({ index, says }) => {
      const hindrance = this.#hindrances.get(index);
      return hindrance === undefined ? says : `${says}, and cannot be made: ${hindrance}`;
    });
    return each.join('. ');
  }
}
