import { BATCH_BUGS } from './batch-bugs.ts';
import { MONGO_BUGS } from './mongo-bugs.ts';
import type { PlantedBug } from './planted-bug.ts';
import { SQLITE_BUGS } from './sqlite-bugs.ts';

/** PLANTED_BUGS: `all` has those tried, too, that only a soak tries. */
const ALL = process.env.PLANTED_BUGS === 'all';

const tried = (bugs: readonly PlantedBug[]) => bugs.filter(({ inSoak }) => ALL || !inSoak);

/** Every faulty variant that is tried, by the database it is tried on. */
export const PLANTED_BUGS = {
  SQLite: tried([...SQLITE_BUGS, ...BATCH_BUGS]),
  MongoDB: tried(MONGO_BUGS),
} satisfies Record<string, readonly PlantedBug[]>;

/** The product as it is, tried like the variants: what catches them must let it pass. */
export const CONTROL = 'control';
