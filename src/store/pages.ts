import { type Checked, isUuid } from './checked.ts';
import { type Page, type ReportUnreadable, UnreadableRecord } from './store.ts';

/** How many records at least are read at once after a first read that had some which cannot be read. */
const MIN_READ_AGAIN = 100;

/** How often a page reads on past records that cannot be read, before it ends short. */
const MAX_READS = 10;

/** Where records are read from. */
interface Listing<Stored, Record> {
  /** Reads at most so many records that follow an id, in the order of the list; null: from its beginning. */
  read(after: string | null, count: number): Promise<readonly Stored[]> | readonly Stored[];
  idOf(stored: Stored): string;
  /** Null: it is passed over, as if it were not there. */
  check(stored: Stored): Checked<Record> | null;
}

/**
 * A page of a list, full as long as there are records that can be read. Others are passed over and reported: so none of them
 * hides what follows, and no run of them takes longer than MAX_READS.
 */
export async function readPage<Stored, Record extends { readonly id: string }>(
  { read, idOf, check }: Listing<Stored, Record>,
  { after, limit }: { readonly after: string | null; readonly limit: number },
  report: ReportUnreadable,
): Promise<Page<Record>> {
  const records: Record[] = [];
  let position = after;
  // A next page can only follow an id that a page token has room for.
  for (let reads = 0; reads < MAX_READS || !isUuid(position); reads += 1) {
    // One more than asked for tells whether there is another page.
    const count = Math.max(limit + 1 - records.length, reads === 0 ? 0 : MIN_READ_AGAIN);
    const found = await read(position, count);
    for (const stored of found) {
      const record = check(stored);
      if (record === null) continue;
      if (record instanceof UnreadableRecord) report(record);
      else if (records.length === limit) return { records, next: records.at(-1)?.id ?? null };
      else records.push(record);
    }
    const last = found.at(-1);
    if (last === undefined || found.length < count) return { records, next: null };
    position = idOf(last);
  }
  return { records, next: position };
}
