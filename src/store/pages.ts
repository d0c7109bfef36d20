import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { assert } from '../../common/invariants.ts';
import { isCanonicalUuid } from '../../common/rules/field-rules.ts';
import type { Checked } from './checked.ts';
import { type ReportUnreadable, UnreadableRecord } from './port/faults.ts';
import type { Page } from './port/page.ts';

/** The minimum size of further reads, once a first read met unreadable records. */
const MIN_NEXT_READ = 100;

/** The maximum number of reads for a page, which then ends short, and for a call of firstReadable. */
const MAX_READS = 10;

interface Listing<Stored, Record> {
  /** Reads at most `count` records after an id, in the order of the list; null: from its start. */
  read(after: string | null, count: number): Promise<readonly Stored[]> | readonly Stored[];
  toId(stored: Stored): string;
  /** Returns null for a record that is not part of the list. */
  check(stored: Stored): Checked<Record> | null;
  /** Whether toId's result fits into a page token; default: whether it is a UUID. */
  isPosition?(id: string | null): boolean;
  /** The minimum size of further reads. */
  readonly nextRead?: number;
}

/**
 * Reads a page of a list. Unreadable records are skipped and reported, and do not count towards `limit`. After MAX_READS
 * reads, the page ends short at the next record whose id is a UUID. A page of studios, whose ids are no UUIDs, never ends
 * short.
 */
export async function readPage<Stored, Record>(
  { read, toId, check, isPosition = isCanonicalUuid, nextRead = MIN_NEXT_READ }: Listing<Stored, Record>,
  { after, limit }: { readonly after: string | null; readonly limit: number },
  report: ReportUnreadable,
): Promise<Page<Record>> {
  const records: Record[] = [];
  let skipped = 0;
  /** Unreadable records before the last record; later ones are read again for the next page. */
  let skippedBefore = 0;
  let position = after;
  let lastListed: Stored | undefined;
  // A page must end at a valid UUID, because nothing else fits into a page token.
  for (let reads = 0; reads < MAX_READS || !isPosition(position); reads += 1) {
    // A store may return without waiting for I/O.
    if (reads > 0) await yieldToEventLoop();
    // One more than `limit` shows whether there is a next page.
    const count = Math.max(limit + 1 - records.length, reads === 0 ? 0 : nextRead);
    const found = await read(position, count);
    for (const stored of found) {
      const record = check(stored);
      if (record === null) continue;
      if (record instanceof UnreadableRecord) {
        report(record);
        skipped += 1;
      } else if (records.length === limit) {
        return { records, next: lastListed === undefined ? null : toId(lastListed), skipped: skippedBefore };
      } else {
        records.push(record);
        lastListed = stored;
        skippedBefore = skipped;
      }
    }
    const last = found.at(-1);
    if (last === undefined || found.length < count) return { records, next: null, skipped };
    const next = toId(last);
    assert(next !== position, 'page_moves');
    position = next;
  }
  return { records, next: position, skipped };
}

/** The size of further reads of a filtered list. */
const NEXT_FILTERED_READ = 500;

/** Returns the listing of a filtered list. Its positions begin with an id. */
export const filteredPage = <Stored, Record>(listing: Listing<Stored, Record>): Listing<Stored, Record> => ({
  ...listing,
  isPosition: (position) => isCanonicalUuid(position?.split(' ')[0]),
  nextRead: NEXT_FILTERED_READ,
});

/** The size of further reads, once a first read met unreadable records. */
const NEXT_READ = 500;

/** How long calls start behind unreadable records that an earlier call skipped; milliseconds. */
const START_BEHIND_MS = 60_000;

/** A queue of records that may change their positions. */
interface Queue<Stored, Record, Position> {
  /** Reads the first `count` records. */
  first(count: number): Promise<readonly Stored[]> | readonly Stored[];
  /** Reads the first `count` records behind a position; null: from the start. Positions must be totally ordered. */
  behind(position: Position | null, count: number): Promise<readonly Stored[]> | readonly Stored[];
  /** Returns undefined if the record's position is unreadable. */
  toPosition(stored: Stored): Position | undefined;
  /** Returns null for an unreadable record, and undefined for one that is skipped only this time. */
  check(stored: Stored): Record | null | undefined;
}

/**
 * Returns a function that reads the first readable records of a queue, in which unreadable ones may stay forever. A call
 * skips unreadable ones with at most MAX_READS more reads. If even more are in front, the call returns nothing, and later
 * calls start behind them. After START_BEHIND_MS, the front is read again, because it may have become readable.
 */
export function firstReadable<Stored, Record, Position extends object>(
  { first, behind, toPosition, check }: Queue<Stored, Record, Position>,
  now = () => performance.now(),
): (limit: number) => Promise<Record[]> {
  let start: { readonly behind: Position; readonly until: number } | undefined;
  return async (limit) => {
    if (start && start.until <= now()) start = undefined;
    if (!start) {
      const found = await first(limit);
      const records = found.flatMap((stored) => check(stored) ?? []);
      if (records.length === found.length || found.length < limit) return records;
    }
    const records: Record[] = [];
    let position = start?.behind ?? null;
    let isPassedOver = false;
    for (let reads = 0; reads < MAX_READS; reads += 1) {
      const found = await behind(position, NEXT_READ);
      for (const stored of found) {
        const record = check(stored);
        if (record === undefined) isPassedOver = true;
        else if (record !== null) records.push(record);
        if (records.length === limit) return records;
      }
      const last = found.map(toPosition).findLast((each) => each !== undefined);
      if (last === undefined || found.length < NEXT_READ) return records;
      position = last;
    }
    if (records.length === 0 && position !== null && !isPassedOver) {
      start = { behind: position, until: start?.until ?? now() + START_BEHIND_MS };
    }
    return records;
  };
}
