import type { PlantedBug } from './planted-bug.ts';

const CSV_CELLS = 'test/unit/csv-export.test.ts';
const CSV = 'operator/csv-export.ts';

const FILTERS = 'test/integration/filters.test.ts';
const ON_SQLITE = 'test/contract/sqlite-store.test.ts';

/** Faults of exports and filters. */
export const EXPORT_BUGS: readonly PlantedBug[] = [
  {
    name: 'CSV does not escape a formula after an apostrophe',
    suite: CSV_CELLS,
    caughtBy: `"'=1+1" is written "''=1+1"`,
    patches: [{ file: CSV, find: "/^'*[=+\\-@\\t\\r\\n＝＋－＠]/u", put: '/^[=+\\-@\\t\\r\\n＝＋－＠]/u' }],
  },
  {
    name: 'a token continues the list of another filter',
    suite: FILTERS,
    caughtBy: 'a token continues the list of its filter, however that is written, and no other',
    patches: [{ file: 'src/usecases/read-leads.ts', find: 'scopeOf(studioId, filter)', put: 'studioId' }],
  },
  {
    name: 'a list by changes skips leads that changed at one time',
    suite: ON_SQLITE,
    caughtBy: 'lists what a filter over everything finds, once and in order, at random ranges',
    patches: [
      { file: 'src/store/sqlite/lead-reads.ts', text: '(updated_at, id)', put: 'updated_at' },
      { file: 'src/store/sqlite/lead-reads.ts', text: "(?4, unhex(?5, '-'))", put: '?4 AND ?5 = ?5' },
    ],
  },
];
