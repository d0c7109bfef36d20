import type { DatabaseSync } from 'node:sqlite';

/** The maximum size of the cache, which is cleared when it is full. */
const MAX_CACHED_STUDIOS = 50_000;

/** The numbers that replace studio ids in the tables of leads. */
export interface StudioNumbers {
  /** Returns a studio's number; undefined: it has no leads. Caches it, so it must not be called within a write. */
  of(studioId: string): number | undefined;
  /** Does the same within a write, without caching: a number that is rolled back may be given to another studio. */
  inWrite(studioId: string): number | undefined;
  /** Returns a studio's number, assigning one if necessary; within a write. */
  assign(studioId: string): number;
}

export function studioNumbers(database: DatabaseSync): StudioNumbers {
  const select = database.prepare('SELECT number FROM studio_numbers WHERE studio_id = ?');
  const insert = database.prepare('INSERT INTO studio_numbers (studio_id) VALUES (?)');
  const cache = new Map<string, number>();

  const find = (studioId: string) => select.get(studioId)?.number as number | undefined;
  const inWrite = (studioId: string) => cache.get(studioId) ?? find(studioId);

  return {
    of(studioId) {
      const known = cache.get(studioId);
      if (known !== undefined) return known;
      const number = find(studioId);
      if (number === undefined) return undefined;
      if (cache.size >= MAX_CACHED_STUDIOS) cache.clear();
      cache.set(studioId, number);
      return number;
    },
    inWrite,
    assign: (studioId) => inWrite(studioId) ?? Number(insert.run(studioId).lastInsertRowid),
  };
}
