import type { PlantedBug } from './planted-bug.ts';

const POWER_CUTS = 'test/crash/power-cuts.test.ts';
const OPEN_DATABASE = 'src/store/sqlite/open-database.ts';

/** Faults that show only when processes crash, stop or are overloaded. */
export const CRASH_BUGS: readonly PlantedBug[] = [
  {
    name: 'a commit does not wait for the disk',
    suite: POWER_CUTS,
    caughtBy: 'at any moment',
    patches: [{ file: OPEN_DATABASE, text: 'PRAGMA synchronous = FULL', put: 'PRAGMA synchronous = NORMAL' }],
  },
];
