import type { PlantedBug } from './planted-bug.ts';

const SQLITE = 'src/store/sqlite/leads.ts';
const ON_SQLITE = 'test/contract/sqlite-store.test.ts';
const REMAINS = 'test/contract/sqlite-erasure.test.ts';
const NO_BYTE =
  'no file of the database has a byte of personal data of an erased lead, whatever happened to the lead before';

/** Faults of erasure. */
export const ERASURE_BUGS: readonly PlantedBug[] = [
  {
    name: 'an erased lead keeps its original data',
    suite: REMAINS,
    caughtBy: NO_BYTE,
    patches: [{ file: SQLITE, text: 'original = NULL,', put: '' }],
  },
  {
    name: 'an erasure is not in the change feed',
    suite: ON_SQLITE,
    caughtBy: 'the feed has what is left of an erased lead',
    patches: [{ file: 'src/store/decisions.ts', find: "marked(found.mark, 'erased', updatedAt)", put: 'found.mark' }],
  },
  {
    name: 'a held lead is erased',
    suite: 'test/integration/holds.test.ts',
    caughtBy: 'of a lead forbids to erase it, is shown with all of the lead, and changes nothing of it',
    patches: [{ file: 'src/store/decisions.ts', find: 'found.hold || found.isStudioHeld', put: 'found.isStudioHeld' }],
  },
  {
    name: 'on MongoDB, a lead is erased that is held since it was read',
    suite: 'test/contract/mongo-store.test.ts',
    caughtBy: 'a lead that is erased while a hold comes, goes or is replaced, is never erased while it is held',
    patches: [
      {
        file: 'src/store/mongo/marks.ts',
        find: '...sameHold(found)',
        put: '...{}',
      },
    ],
  },
  {
    name: 'an erasure of a contact hides that leads were held',
    suite: 'test/integration/holds.test.ts',
    caughtBy: 'leaves leads out of an erasure of their contact, which says so and does not claim to be complete',
    patches: [{ file: 'src/usecases/erase-leads.ts', find: 'skipped.size + held.size > 0', put: 'skipped.size > 0' }],
  },
  {
    name: 'the log is never truncated',
    suite: REMAINS,
    caughtBy: 'leads erase beside a running core',
    patches: [
      {
        file: 'src/store/sqlite/checkpoint-worker.ts',
        find: "database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy === 0",
        put: 'true',
      },
    ],
  },
];
