import type { PlantedBug } from './planted-bug.ts';

const FAULTS = 'test/e2e/command-faults.test.ts';
const SECRET_LOST = 'a new secret that cannot be written is revoked and reported as lost';
const CSV_CELLS = 'test/unit/csv-export.test.ts';
const CSV = 'operator/csv-export.ts';
const FILTERS = 'test/integration/leads.test.ts';
const ON_SQLITE = 'test/contract/sqlite-store.test.ts';

/** Faults of operators' commands, imports and exports. */
export const OPERATOR_BUGS: readonly PlantedBug[] = [
  {
    name: 'doctor prints responses of the core unescaped',
    suite: 'test/security/terminal.test.ts',
    caughtBy: 'doctor escapes the response of a hostile core',
    patches: [{ file: 'operator/commands/deployment-commands.ts', find: 'printable(says)', put: 'says' }],
  },
  {
    name: 'doctor --records reads a broken file as if it were sound',
    suite: 'test/e2e/doctor.test.ts',
    caughtBy: 'doctor --records finds pages that belong to no table',
    patches: [{ file: 'src/store/sqlite/sqlite-store.ts', find: "broken !== 'ok'", put: 'false' }],
  },
  {
    name: 'a key whose secret is lost stays valid',
    suite: FAULTS,
    caughtBy: SECRET_LOST,
    patches: [
      {
        file: 'operator/commands/key-commands.ts',
        find: 'await revokeApiKey(deps, { studioId, memberId: null, keyId: key.id, ...BY_HAND });',
        put: '',
      },
    ],
  },
  {
    name: 'a CSV import drops cells beyond the header',
    suite: 'test/unit/csv-import.test.ts',
    caughtBy: 'a wrong CSV record is refused alone, in chunks of any size: "Ada,a@b,Berlin"',
    patches: [{ file: 'operator/csv-records.ts', find: 'if (cells.length !== count) $THEN', put: '' }],
  },
  {
    name: 'a CSV export does not escape a formula after an apostrophe',
    suite: CSV_CELLS,
    caughtBy: `the text "'=1+1" is written as the CSV cell "''=1+1"`,
    patches: [{ file: CSV, find: "/^'*[=+\\-@\\t\\r\\n＝＋－＠]/u", put: '/^[=+\\-@\\t\\r\\n＝＋－＠]/u' }],
  },
  {
    name: 'a page token continues a list with another filter',
    suite: FILTERS,
    caughtBy: 'a page token continues only a list with an equivalent filter',
    patches: [{ file: 'src/usecases/read-leads.ts', find: 'toScope(studioId, filter)', put: 'studioId' }],
  },
  {
    name: 'a list by changes skips leads that changed at the same time',
    suite: ON_SQLITE,
    caughtBy: 'random filters list each matching lead once, in order, and count them',
    patches: [
      { file: 'src/store/sqlite/lead-reads.ts', text: '(updated_at, id)', put: 'updated_at' },
      { file: 'src/store/sqlite/lead-reads.ts', text: "(?4, unhex(?5, '-'))", put: '?4 AND ?5 = ?5' },
    ],
  },
];
