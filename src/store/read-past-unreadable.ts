/** How many records that cannot be read are passed over at most, so that others are reached. */
const MAX_PASSED_OVER = 1000;

/**
 * The first of those that wait, as many as can be read. There is no place to go on after, as in a page: what waits may come to stand
 * anywhere. So more are read from the beginning where some cannot be read.
 *
 * @param read gives at most so many, in their order
 * @param check null: it cannot be read
 */
export async function readPastUnreadable<Stored, Record>(
  limit: number,
  read: (count: number) => Promise<readonly Stored[]> | readonly Stored[],
  check: (stored: Stored) => Record | null,
): Promise<Record[]> {
  for (let count = limit; ; count = Math.min(2 * count, limit + MAX_PASSED_OVER)) {
    const found = await read(count);
    const records = found.flatMap((stored) => check(stored) ?? []);
    const isAll = found.length < count || count >= limit + MAX_PASSED_OVER;
    if (records.length >= limit || isAll) return records.slice(0, limit);
  }
}
