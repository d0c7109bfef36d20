import type { PlantedBug } from './planted-bug.ts';

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
        find: 'isOpen(lead.stage) ? claimed.holderAfterFreeingStale(lead, studio, contactKeys) : undefined',
        put: 'claimed.holderAfterFreeingStale(lead, studio, contactKeys)',
      },
    ],
  },
  {
    name: 'cells of CSV beyond the header are cut off',
    suite: 'test/unit/csv-import.test.ts',
    caughtBy: 'that is wrong costs itself only, in chunks of any size: "Ada,a@b,Berlin"',
    patches: [{ file: 'operator/csv-records.ts', find: 'if (cells.length !== count) $THEN', put: '' }],
  },
];
