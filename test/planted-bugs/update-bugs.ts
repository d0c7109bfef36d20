import type { PlantedBug } from './planted-bug.ts';

const ON_SQLITE = 'test/contract/sqlite-store.test.ts';
const IN_SQLITE = 'src/store/sqlite/leads.ts';

const FREES = 'of an open lead: the former contact becomes free and the new one taken';
const STALE = 'a move of a lead that has changed since the expected time is stale and writes nothing';

/** Faults of corrections on SQLite, and of what both stores share. */
export const UPDATE_BUGS: readonly PlantedBug[] = [
  {
    name: 'the former contact of a corrected lead stays claimed',
    suite: ON_SQLITE,
    caughtBy: FREES,
    patches: [
      {
        file: IN_SQLITE,
        find: 'claimed.free(studio, [...contactKeys, ...(claims?.contactKeys ?? [])], number)',
        put: 'claimed.free(studio, claims?.contactKeys ?? [], number)',
      },
    ],
  },
  {
    name: 'a move overwrites what a colleague has changed since the expected time',
    suite: ON_SQLITE,
    caughtBy: STALE,
    patches: [
      {
        file: 'src/store/decisions/leads.ts',
        find: 'Boolean(expected && expected.getTime() !== updatedAt.getTime())',
        put: 'false',
      },
    ],
  },
];
