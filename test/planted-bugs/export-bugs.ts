import type { PlantedBug } from './planted-bug.ts';

const CSV_CELLS = 'test/unit/csv-export.test.ts';
const CSV = 'operator/csv-export.ts';

/** Faults of exports. */
export const EXPORT_BUGS: readonly PlantedBug[] = [
  {
    name: 'CSV does not escape a formula after an apostrophe',
    suite: CSV_CELLS,
    caughtBy: `"'=1+1" is written "''=1+1"`,
    patches: [{ file: CSV, find: "/^'*[=+\\-@\\t\\r\\n＝＋－＠]/u", put: '/^[=+\\-@\\t\\r\\n＝＋－＠]/u' }],
  },
];
