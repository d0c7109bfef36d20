import type { PlantedBug } from './planted-bug.ts';

const SQLITE = 'src/store/sqlite/leads.ts';
const ON_SQLITE = 'test/contract/sqlite-store.test.ts';
const REMAINS = 'test/contract/sqlite-erasure.test.ts';
const NO_BYTE = "no database file has a byte of an erased lead's personal data, whatever its past";

/** Faults of erasure. */
export const ERASURE_BUGS: readonly PlantedBug[] = [
  {
    name: 'an erased lead retains its original data',
    suite: REMAINS,
    caughtBy: NO_BYTE,
    patches: [{ file: SQLITE, text: 'original = NULL,', put: '' }],
  },
  {
    name: 'deleted data is not overwritten in the file',
    suite: REMAINS,
    caughtBy: NO_BYTE,
    patches: [
      {
        file: 'src/store/sqlite/open-database.ts',
        find: "database.exec('PRAGMA secure_delete = ON');",
        put: "database.exec('PRAGMA secure_delete = OFF');",
      },
    ],
  },
  {
    name: 'the time for retention follows a clock immediately',
    suite: 'test/unit/retention-lease.test.ts',
    caughtBy: 'retention time does not jump with a clock, however often cores start',
    patches: [
      { file: 'src/usecases/retention-lease.ts', find: 'Math.min(now - seen.at, 2 * this.#idleMs)', put: 'Infinity' },
    ],
  },
  {
    name: 'a studio is reported as erased while an earlier creation may still be written',
    suite: 'test/integration/erase-studio.test.ts',
    caughtBy: 'EraseStudio completes only after late writes can have ended, whatever clocks show',
    patches: [{ file: 'src/usecases/erase-studio.ts', find: 'endedMs < STUDIO_ENDS_MS', put: 'endedMs < 0' }],
  },
  {
    name: 'an ended studio can be reopened',
    suite: ON_SQLITE,
    caughtBy: 'an ended studio loses its members, sources and retention, but keeps its leads',
    patches: [
      {
        file: 'src/store/decisions/directory.ts',
        find: "if (found?.studio.status === 'ended') return { outcome: { kind: 'ended' } };",
        put: '',
      },
    ],
  },
  {
    name: 'on MongoDB, a tombstone is deleted even if it was distributed after the check',
    suite: 'test/contract/mongo-store.test.ts',
    caughtBy: 'an erased lead is never deleted before every consumer saw it, under any interleaving',
    patches: [
      {
        file: 'src/store/mongo/lead-deletion.ts',
        find: '{ ...condition, _id: { $in: leadIds.map((leadId) => leadKey(studioId, leadId)) } }',
        put: '{ studioId, _id: { $in: leadIds.map((leadId) => leadKey(studioId, leadId)) } }',
      },
    ],
  },
  {
    name: 'the log is never truncated',
    suite: REMAINS,
    caughtBy: 'leads erase-contact beside a running core leaves no personal byte',
    patches: [
      {
        file: 'src/store/sqlite/checkpoint-worker.ts',
        find: "database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy === 0",
        put: 'true',
      },
    ],
  },
];
