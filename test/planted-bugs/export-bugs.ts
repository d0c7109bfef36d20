import type { PlantedBug } from './planted-bug.ts';

const FILES = 'test/integration/export-files.test.ts';
const CSV_CELLS = 'test/unit/csv.test.ts';
const OUTPUT = 'operator/export-output.ts';
const CSV = 'operator/export-format.ts';

/** Faults of exports and their files. */
export const EXPORT_BUGS: readonly PlantedBug[] = [
  {
    name: 'CSV does not escape a formula after an apostrophe',
    suite: CSV_CELLS,
    caughtBy: `"'=1+1" is written "''=1+1"`,
    patches: [{ file: CSV, find: "/^'*[=+\\-@\\t\\r\\n＝＋－＠]/u", put: '/^[=+\\-@\\t\\r\\n＝＋－＠]/u' }],
  },
  {
    name: 'a resumed export file keeps an incomplete record',
    suite: FILES,
    caughtBy: 'that ends anywhere is resumed to exactly the same file',
    patches: [{ file: OUTPUT, find: 'await file.truncate(end);', put: '' }],
    inSoak: true,
  },
];
