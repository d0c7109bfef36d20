/** The number of records that a read takes after a first one that met unreadable records. */
const NEXT_READ = 500;

/** The maximum number of such reads in a call. */
const MAX_READS = 10;

/** How long calls begin behind the unreadable records that an earlier call has skipped; milliseconds. */
const START_BEHIND_MS = 60_000;

/** A queue of records, which change their positions in it. */
interface Queue<Stored, Record, Position> {
  /** Reads the first `count` records. */
  first(count: number): Promise<readonly Stored[]> | readonly Stored[];
  /** Reads the first `count` records behind a position; null: from the start. Positions must be in a total order. */
  behind(position: Position | null, count: number): Promise<readonly Stored[]> | readonly Stored[];
  /** Undefined: the record has none that can be read. */
  positionOf(stored: Stored): Position | undefined;
  /** Returns null for an unreadable record. */
  check(stored: Stored): Record | null;
}

/**
 * Reads the first readable records of a queue in which any number of unreadable ones may stay for ever. Each call costs at
 * most MAX_READS reads more than it would without them. If more of them are in front than that, it returns nothing, and
 * the next calls begin behind them: so the records behind are reached, and those in front, which may have become
 * readable, are read again after START_BEHIND_MS.
 */
export class FirstReadable<Stored, Record, Position extends object> {
  readonly #queue: Queue<Stored, Record, Position>;
  readonly #now: () => number;
  #start: { readonly behind: Position; readonly until: number } | undefined;

  constructor(queue: Queue<Stored, Record, Position>, now = () => performance.now()) {
    this.#queue = queue;
    this.#now = now;
  }

  async read(limit: number): Promise<Record[]> {
    const { first, behind, positionOf, check } = this.#queue;
    if (this.#start && this.#start.until <= this.#now()) this.#start = undefined;
    if (!this.#start) {
      const found = await first(limit);
      const records = found.flatMap((stored) => check(stored) ?? []);
      if (records.length === found.length || found.length < limit) return records;
    }
    const records: Record[] = [];
    let position = this.#start?.behind ?? null;
    for (let reads = 0; reads < MAX_READS; reads += 1) {
      const found = await behind(position, NEXT_READ);
      for (const stored of found) {
        const record = check(stored);
        if (record !== null) records.push(record);
        if (records.length === limit) return records;
      }
      const last = found.map(positionOf).findLast((each) => each !== undefined);
      if (last === undefined || found.length < NEXT_READ) return records;
      position = last;
    }
    if (records.length === 0 && position !== null) {
      this.#start = { behind: position, until: this.#start?.until ?? this.#now() + START_BEHIND_MS };
    }
    return records;
  }
}
