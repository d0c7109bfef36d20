import type { PlantedBug } from './planted-bug.ts';

const STREAM = 'test/integration/export-leads.test.ts';
const FILES = 'test/integration/export-files.test.ts';
const CSV_CELLS = 'test/unit/csv.test.ts';
const EXPORT_LEADS = 'src/usecases/export-leads.ts';
const OUTPUT = 'operator/export-output.ts';
const CSV = 'operator/csv.ts';

/** Faults of exports, of their files, and of the walks that they are made of. */
export const EXPORT_BUGS: readonly PlantedBug[] = [
  {
    name: 'a page of a walk leaves out the first lead of the next',
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy: 'leads are sorted by id, lowest first, and the pages together have every lead once',
    patches: [
      {
        file: 'src/store/pages.ts',
        find: 'return { records, next: records.at(-1)?.id ?? null };',
        put: 'return { records, next: record.id };',
      },
    ],
  },
  {
    name: 'an export goes on with the lead that was its last',
    suite: STREAM,
    caughtBy: 'of "s1" resumes after each message, also at a later core',
    patches: [
      {
        file: EXPORT_LEADS,
        find: 'const position = next ?? leads.at(-1)?.id;',
        put: 'const position = next ?? leads.at(-2)?.id ?? leads.at(-1)?.id;',
      },
    ],
  },
  {
    name: 'an export goes on with the next studio, whatever is left of the one before',
    suite: STREAM,
    caughtBy: 'of "" resumes after each message, also at a later core',
    patches: [{ file: EXPORT_LEADS, find: 'if (begun) yield begun.studioId;', put: '' }],
    inSoak: true,
  },
  {
    name: 'an export reads on for whoever takes nothing',
    suite: STREAM,
    caughtBy: 'that reads nothing has only a few messages buffered, delays no other caller, and gets all leads later',
    patches: [
      {
        file: 'src/rpc/export-leads.ts',
        find: 'exportLeads(deps, { studioId, resumeToken })',
        put: 'await Array.fromAsync(exportLeads(deps, { studioId, resumeToken }))',
      },
    ],
  },
  {
    name: 'nobody is told of an export whose reader has left',
    suite: STREAM,
    caughtBy: 'that cancels has no more pages read, and is logged',
    patches: [{ file: 'src/rpc/run-stream.ts', find: "signal.addEventListener('abort', cancel);", put: '' }],
    inSoak: true,
  },
  {
    name: 'an export ends well when its core stops',
    suite: STREAM,
    caughtBy: 'whose core stops gets an error, and resumes at the next core without loss',
    patches: [
      {
        file: 'src/rpc/export-leads.ts',
        find: "throw new ConnectError('the service is stopping: continue with the resume token', Code.Unavailable);",
        put: 'return;',
      },
    ],
    inSoak: true,
  },
  {
    name: 'of two texts that a spreadsheet would run or not the cells are the same',
    suite: CSV_CELLS,
    caughtBy: `"'=1+1" is written "''=1+1"`,
    patches: [{ file: CSV, find: "/^'*[=+\\-@\\t\\r\\n＝＋－＠]/u", put: '/^[=+\\-@\\t\\r\\n＝＋－＠]/u' }],
  },
  {
    name: 'a formula in full width is not defused',
    suite: CSV_CELLS,
    caughtBy: 'that would run as a formula starts with an apostrophe: "＝"',
    patches: [{ file: CSV, find: "/^'*[=+\\-@\\t\\r\\n＝＋－＠]/u", put: "/^'*[=+\\-@\\t\\r\\n]/u" }],
    inSoak: true,
  },
  {
    name: 'a line that ends within quotes is taken for a record of CSV',
    suite: FILES,
    caughtBy: 'that ends anywhere is resumed to exactly the same file',
    patches: [{ file: OUTPUT, find: 'byte === QUOTE && hasQuotes', put: 'false' }],
    inSoak: true,
  },
  {
    name: 'half a record stays at the end of a file that is gone on with',
    suite: FILES,
    caughtBy: 'that ends anywhere is resumed to exactly the same file',
    patches: [{ file: OUTPUT, find: 'await file.truncate(end);', put: '' }],
    inSoak: true,
  },
];
