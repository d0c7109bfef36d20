import type { DatabaseSync } from 'node:sqlite';

/** How many are remembered; a process that serves more studios asks again now and then. */
const MOST_REMEMBERED = 10_000;

/** The numbers that stand for studios in the tables of leads. */
export interface StudioNumbers {
  /** A studio's number; undefined: it has no leads. */
  of(studioId: string): number | undefined;
  /** A studio's number, which it gets if it has none; within a write. */
  give(studioId: string): number;
}

export function studioNumbers(database: DatabaseSync): StudioNumbers {
  const select = database.prepare('SELECT number FROM studio_numbers WHERE studio_id = ?');
  const insert = database.prepare('INSERT INTO studio_numbers (studio_id) VALUES (?)');
  const remembered = new Map<string, number>();

  function find(studioId: string): number | undefined {
    const number = select.get(studioId)?.number as number | undefined;
    // One that is given in a transaction that is undone may be another's next.
    if (number === undefined || database.isTransaction) return number;
    if (remembered.size >= MOST_REMEMBERED) remembered.clear();
    remembered.set(studioId, number);
    return number;
  }
  const of = (studioId: string) => remembered.get(studioId) ?? find(studioId);

  return {
    of,
    give: (studioId) => of(studioId) ?? Number(insert.run(studioId).lastInsertRowid),
  };
}
