import { MONGO_BUGS } from './mongo-bugs.ts';
import type { PlantedBug } from './planted-bug.ts';
import { SQLITE_BUGS } from './sqlite-bugs.ts';

/** Every faulty variant, by the database it is tried on. */
export const PLANTED_BUGS = { SQLite: SQLITE_BUGS, MongoDB: MONGO_BUGS } satisfies Record<
  string,
  readonly PlantedBug[]
>;

/** The product as it is, tried like the variants: what catches them must let it pass. */
export const CONTROL = 'control';
