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
    name: 'the time that retention goes by follows a clock at once',
    suite: 'test/unit/retention-turns.test.ts',
    caughtBy: 'does not leap with a clock, however often cores start',
    patches: [
      { file: 'src/usecases/retention-turns.ts', find: 'Math.min(at - seen.at, 2 * this.#idleMs)', put: 'Infinity' },
    ],
  },
  {
    name: 'a studio is reported to be erased while a creation that had begun before may be written',
    suite: 'test/integration/erase-studio.test.ts',
    caughtBy: 'does not report to be complete before what had begun before can have been written, whatever clocks show',
    patches: [{ file: 'src/usecases/erase-studio.ts', find: 'endedMs < STUDIO_ENDS_MS', put: 'endedMs < 0' }],
  },
  {
    name: 'a studio that has ended can be put again',
    suite: ON_SQLITE,
    caughtBy: 'a studio ends for good, loses members, sources and retention, and keeps its leads',
    patches: [
      {
        file: 'src/store/decisions/directory.ts',
        find: "if (found?.studio.status === 'ended') return { outcome: 'ended' };",
        put: '',
      },
    ],
  },
  {
    name: 'on MongoDB, what is left of an erased lead goes if it is distributed after its deliveries were looked for',
    suite: 'test/contract/mongo-store.test.ts',
    caughtBy: 'what others do between any two commands lets none go that a named consumer has not heard of',
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
    caughtBy: 'leads erase-contact beside a running core',
    patches: [
      {
        file: 'src/store/sqlite/checkpoint-worker.ts',
        find: "database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy === 0",
        put: 'true',
      },
    ],
  },
];
