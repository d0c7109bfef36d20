import { type Checked, isUuid } from './checked.ts';
import { type Page, type ReportUnreadable, UnreadableRecord } from './store.ts';

/** The minimum size of further reads, after a first read with unreadable records. */
const MIN_NEXT_READ = 100;

/** The maximum number of reads for a page; after it, the page ends short. */
const MAX_READS = 10;

interface Listing<Stored, Record> {
  /** Reads at most `count` records after an id, in the order of the list; null: from its start. */
  read(after: string | null, count: number): Promise<readonly Stored[]> | readonly Stored[];
  idOf(stored: Stored): string;
  /** Returns null for a record that does not belong in the list. */
  check(stored: Stored): Checked<Record> | null;
}

/**
 * Reads a page of a list. Unreadable records are skipped and reported, and do not count towards `limit`. After
 * MAX_READS reads the page ends short, at the next record whose id is a UUID; a page of studios, whose ids are other
 * texts, is always filled.
 */
export async function readPage<Stored, Record extends { readonly id: string }>(
  { read, idOf, check }: Listing<Stored, Record>,
  { after, limit }: { readonly after: string | null; readonly limit: number },
  report: ReportUnreadable,
): Promise<Page<Record>> {
  const records: Record[] = [];
  let skipped = 0;
  /** Those before the last record; the ones after it are read again for the next page. */
  let skippedBefore = 0;
  let position = after;
  // A page must end at a valid UUID, because a page token has room for nothing else.
  for (let reads = 0; reads < MAX_READS || !isUuid(position); reads += 1) {
    // One more than `limit` shows whether there is a next page.
    const count = Math.max(limit + 1 - records.length, reads === 0 ? 0 : MIN_NEXT_READ);
    const found = await read(position, count);
    for (const stored of found) {
      const record = check(stored);
      if (record === null) continue;
      if (record instanceof UnreadableRecord) {
        report(record);
        skipped += 1;
      } else if (records.length === limit) {
        return { records, next: records.at(-1)?.id ?? null, skipped: skippedBefore };
      } else {
        records.push(record);
        skippedBefore = skipped;
      }
    }
    const last = found.at(-1);
    if (last === undefined || found.length < count) return { records, next: null, skipped };
    position = idOf(last);
  }
  return { records, next: position, skipped };
}
