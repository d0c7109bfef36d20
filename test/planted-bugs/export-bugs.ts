import type { PlantedBug } from './planted-bug.ts';

const STREAM = 'test/integration/export-leads.test.ts';
const FILES = 'test/integration/export-files.test.ts';
const CSV_CELLS = 'test/unit/csv.test.ts';
const EXPORT_LEADS = 'src/usecases/export-leads.ts';
const OUTPUT = 'operator/export-output.ts';
const CSV = 'operator/export-format.ts';

/** Faults of exports and their files. */
export const EXPORT_BUGS: readonly PlantedBug[] = [
  {
    name: 'a resumed export repeats its last lead',
    suite: STREAM,
    caughtBy: 'of "s1" resumes after each message, also at a later core',
    patches: [
      {
        file: EXPORT_LEADS,
        find: 'const position = next ?? leads.at(-1)?.id ?? after ?? BEFORE_ALL_IDS;',
        put: 'const position = next ?? leads.at(-2)?.id ?? leads.at(-1)?.id;',
      },
    ],
  },
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
