import type { DatabaseSync } from 'node:sqlite';

/** How many are remembered; a process that serves more studios asks again now and then. */
const MAX_CACHED_STUDIOS = 50_000;

/** The numbers that stand for studios in the tables of leads. */
export interface StudioNumbers {
  /** A studio's number; undefined: it has no leads. Not within a write, because it is remembered. */
  of(studioId: string): number | undefined;
  /** The same within a write: one that is given there, and undone with it, may be another's next. */
  inWrite(studioId: string): number | undefined;
  /** A studio's number, which it gets if it has none; within a write. */
  give(studioId: string): number;
}

export function studioNumbers(database: DatabaseSync): StudioNumbers {
  const select = database.prepare('SELECT number FROM studio_numbers WHERE studio_id = ?');
  const insert = database.prepare('INSERT INTO studio_numbers (studio_id) VALUES (?)');
  const remembered = new Map<string, number>();

  const find = (studioId: string) => select.get(studioId)?.number as number | undefined;
  const inWrite = (studioId: string) => remembered.get(studioId) ?? find(studioId);

  return {
    of(studioId) {
      const known = remembered.get(studioId);
      if (known !== undefined) return known;
      const number = find(studioId);
      if (number === undefined) return undefined;
      if (remembered.size >= MAX_CACHED_STUDIOS) remembered.clear();
      remembered.set(studioId, number);
      return number;
    },
    inWrite,
    give: (studioId) => inWrite(studioId) ?? Number(insert.run(studioId).lastInsertRowid),
  };
}
