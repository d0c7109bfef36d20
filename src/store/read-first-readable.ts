/** The maximum number of unreadable records that are skipped. */
const MAX_SKIPPED = 1000;

/**
 * Reads the first `limit` readable records of a queue. Unlike a page, it cannot continue after a record, because
 * records change their position; if some are unreadable, it reads more from the start.
 *
 * @param read returns the first `count` records, in order
 * @param check returns null for an unreadable record
 */
export async function readFirstReadable<Stored, Record>(
  limit: number,
  read: (count: number) => Promise<readonly Stored[]> | readonly Stored[],
  check: (stored: Stored) => Record | null,
): Promise<Record[]> {
  for (let count = limit; ; count = Math.min(2 * count, limit + MAX_SKIPPED)) {
    const found = await read(count);
    const records = found.flatMap((stored) => check(stored) ?? []);
    const isAll = found.length < count || count >= limit + MAX_SKIPPED;
    if (records.length >= limit || isAll) return records.slice(0, limit);
  }
}
