import type { PlantedBug } from './planted-bug.ts';

const STREAM = 'test/integration/export-leads.test.ts';
const FILES = 'test/integration/export-files.test.ts';
const CSV_CELLS = 'test/unit/csv.test.ts';
const EXPORT_LEADS = 'src/usecases/export-leads.ts';
const OUTPUT = 'operator/export-output.ts';
const CSV = 'operator/csv.ts';

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
    name: 'a resumed export skips the rest of its studio',
    suite: STREAM,
    caughtBy: 'of "" resumes after each message, also at a later core',
    patches: [{ file: EXPORT_LEADS, find: 'if (begun) yield begun.studioId;', put: '' }],
    inSoak: true,
  },
  {
    name: 'an export reads all leads before it sends the first',
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
    name: 'a cancelled export is not logged',
    suite: STREAM,
    caughtBy: 'that cancels has no more pages read, and is logged',
    patches: [{ file: 'src/rpc/run-stream.ts', find: "signal.addEventListener('abort', cancel);", put: '' }],
    inSoak: true,
  },
  {
    name: 'an export ends without an error when its core stops',
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
    name: 'CSV does not escape a formula after an apostrophe',
    suite: CSV_CELLS,
    caughtBy: `"'=1+1" is written "''=1+1"`,
    patches: [{ file: CSV, find: "/^'*[=+\\-@\\t\\r\\n＝＋－＠]/u", put: '/^[=+\\-@\\t\\r\\n＝＋－＠]/u' }],
  },
  {
    name: 'CSV does not escape a formula with a full-width sign',
    suite: CSV_CELLS,
    caughtBy: 'that would run as a formula starts with an apostrophe: "＝"',
    patches: [{ file: CSV, find: "/^'*[=+\\-@\\t\\r\\n＝＋－＠]/u", put: "/^'*[=+\\-@\\t\\r\\n]/u" }],
    inSoak: true,
  },
  {
    name: 'a line break inside quotes ends a CSV record',
    suite: FILES,
    caughtBy: 'that ends anywhere is resumed to exactly the same file',
    patches: [{ file: OUTPUT, find: 'byte === QUOTE && hasQuotes', put: 'false' }],
    inSoak: true,
  },
  {
    name: 'a resumed export file keeps an incomplete record',
    suite: FILES,
    caughtBy: 'that ends anywhere is resumed to exactly the same file',
    patches: [{ file: OUTPUT, find: 'await file.truncate(end);', put: '' }],
    inSoak: true,
  },
];
