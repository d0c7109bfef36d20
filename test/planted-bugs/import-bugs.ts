import type { PlantedBug } from './planted-bug.ts';

const BY_RPC = 'test/integration/import-leads.test.ts';
const CLOSED = 'claims no contact, blocks no other lead, and finds the lead by contact and key';

/** Faults of imports. */
export const IMPORT_BUGS: readonly PlantedBug[] = [
  {
    name: 'an imported closed lead blocks its contact',
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy: CLOSED,
    patches: [
      {
        file: 'src/store/sqlite/leads.ts',
        find: 'claimed.take(studio, contactKeys, { number, isOpen: isOpen(lead.stage) });',
        put: 'claimed.take(studio, contactKeys, { number, isOpen: true });',
      },
      {
        file: 'src/store/sqlite/leads.ts',
        find: 'isOpen(lead.stage) ? claimed.holderOf(studio, contactKeys) : undefined',
        put: 'claimed.holderOf(studio, contactKeys)',
      },
    ],
  },
  {
    name: 'an imported lead is listed by the time of its import',
    suite: BY_RPC,
    caughtBy: 'writes leads with their stages and times, listed by creation time',
    patches: [{ file: 'src/usecases/import-leads.ts', find: 'newIdAt(lead.createdAt)', put: 'newIdAt(now)' }],
  },
  {
    name: 'a refused lead is reported as imported',
    suite: BY_RPC,
    caughtBy: 'refuses each lead separately',
    patches: [
      {
        file: 'src/usecases/import-leads.ts',
        find: "if (error instanceof Refusal) return { kind: 'refused', refusal: error } as const;",
        put: "if (error instanceof Refusal) return { kind: 'already-there', leadId: studio.id } as const;",
      },
    ],
    inSoak: true,
  },
  {
    name: 'a lead that a studio exported is imported into it again',
    suite: BY_RPC,
    caughtBy: 'recognises a lead by its id, whatever became of it, and no lead of another studio',
    patches: [{ file: 'src/usecases/import-leads.ts', find: 'if (presence) $THEN', put: '' }],
  },
  {
    name: 'an erased lead is imported again',
    suite: BY_RPC,
    caughtBy: 'recognises a lead by its id, whatever became of it, and no lead of another studio',
    patches: [
      {
        file: 'src/store/sqlite/leads.ts',
        find: "return isErased(row) ? 'erased' : 'present';",
        put: "return isErased(row) ? null : 'present';",
      },
    ],
    inSoak: true,
  },
  {
    name: 'cells of CSV beyond the header are cut off',
    suite: 'test/unit/csv-reader.test.ts',
    caughtBy: 'whose quotes are wrong costs itself only, in pieces of any size: "Ada,a@b,Berlin"',
    patches: [{ file: 'operator/csv-reader.ts', find: 'if (cells.length !== header.cells) $THEN', put: '' }],
  },
  {
    name: 'a record of CSV ends at LF only',
    suite: 'test/unit/import-format.test.ts',
    caughtBy: 'has lines that end with CRLF, LF or CR, all of them in one file, counted in quotes, too',
    patches: [
      {
        file: 'operator/csv-reader.ts',
        find: 'const CELL_END = /[",;\\t\\r\\n]/g;',
        put: 'const CELL_END = /[",;\\t\\n]/g;',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a day that a month does not have becomes one of the next month',
    suite: 'test/e2e/import-files.test.ts',
    caughtBy: 'NDJSON',
    patches: [{ file: 'operator/parse-time.ts', find: '!day.toISOString().startsWith(date)', put: 'false' }],
    inSoak: true,
  },
  {
    name: 'a time that a caller sends is rounded up',
    suite: 'test/unit/convert.test.ts',
    caughtBy: '999500000 nanoseconds are 999 ms, never more',
    patches: [
      {
        file: 'src/rpc/convert.ts',
        find: 'new Date(isTime ? Number(seconds) * 1000 + Math.floor(nanos / 1e6) : Number.NaN)',
        put: 'new Date(isTime ? Number(seconds) * 1000 + Math.round(nanos / 1e6) : Number.NaN)',
      },
    ],
  },
];

/** The same on MongoDB. */
export const MONGO_IMPORT_BUGS: readonly PlantedBug[] = [
  {
    name: 'on MongoDB, an imported closed lead is not found by its contact',
    suite: 'test/contract/mongo-store.test.ts',
    caughtBy: CLOSED,
    patches: [
      {
        file: 'src/store/mongo/documents.ts',
        find: 'isOpen(lead.stage) ? claimsDocument(claims) : closedClaimsDocument(id, claims)',
        put: 'isOpen(lead.stage) ? claimsDocument(claims) : { openContactKey: erasedClaim(id) }',
      },
    ],
  },
];
