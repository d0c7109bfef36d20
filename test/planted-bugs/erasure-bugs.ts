import type { PlantedBug } from './planted-bug.ts';

const SQLITE = 'src/store/sqlite/lead-erasure.ts';
const MONGO = 'src/store/mongo/lead-erasure.ts';
const ON_SQLITE = 'test/contract/sqlite-store.test.ts';
const ON_MONGO = 'test/contract/mongo-store.test.ts';
const ERASED_LEAD = 'an erased lead cannot be found, keeps its stage, and frees its contact: new';
const KEY = 'the key of an erased lead returns that it is erased, whatever the data, and nothing is written';
const FORMER = 'a corrected lead is found for erasure by each former contact, until it is erased';
const REMAINS = 'test/contract/sqlite-erasure.test.ts';
const NO_BYTE =
  'no file of the database has a byte of personal data of an erased lead, whatever happened to the lead before';

/** Faults of erasure. */
export const ERASURE_BUGS: readonly PlantedBug[] = [
  {
    name: 'an erased lead keeps its claims',
    suite: ON_SQLITE,
    caughtBy: ERASED_LEAD,
    patches: [{ file: SQLITE, find: 'if (keys) $FREE; else $ALL', put: '' }],
  },
  {
    name: 'an erased lead keeps its original data',
    suite: REMAINS,
    caughtBy: NO_BYTE,
    patches: [{ file: SQLITE, text: 'note = NULL, original = NULL,', put: 'note = NULL,' }],
  },
  {
    name: 'an erased lead keeps its fingerprint',
    suite: REMAINS,
    caughtBy: NO_BYTE,
    patches: [{ file: SQLITE, text: "fingerprint = x'', fingerprint_version = 0,", put: 'fingerprint_version = 0,' }],
    inSoak: true,
  },
  {
    name: 'an erased lead frees its idempotency key',
    suite: ON_SQLITE,
    caughtBy: KEY,
    patches: [
      { file: SQLITE, text: "contact_keys = x'',", put: "contact_keys = x'', idempotency_key = randomblob(16)," },
    ],
    inSoak: true,
  },
  {
    name: 'an erasure ignores the expected time',
    suite: ON_SQLITE,
    caughtBy: 'a lead that has changed since the expected time is not erased',
    patches: [{ file: SQLITE, find: "if (expectedUpdatedAt && $DIFFERS) return { kind: 'stale' } as const;", put: '' }],
  },
  {
    name: 'an erasure is not in the change feed',
    suite: ON_SQLITE,
    caughtBy: 'the feed has what is left of an erased lead',
    patches: [{ file: SQLITE, text: `erased_at = ?1, \${changeMark('erased', '?1')}`, put: 'erased_at = ?1' }],
  },
  {
    name: 'a corrected lead is not found by its former contact',
    suite: ON_SQLITE,
    caughtBy: FORMER,
    patches: [
      {
        file: 'src/store/sqlite/lead-updates.ts',
        find: 'for (const key of remembered) insertFormer.run(studio, hashBytes(key), number);',
        put: '',
      },
    ],
  },
  {
    name: 'a page does not count the leads that it leaves out',
    suite: ON_SQLITE,
    caughtBy: "each read that leaves it out says so: a lead whose stage is 'qualified'",
    patches: [{ file: 'src/store/pages.ts', find: 'skipped += 1;', put: '' }],
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
  {
    name: 'a core does not truncate the log of one that was killed',
    inSoak: true,
    suite: REMAINS,
    caughtBy: 'EraseLead at a core that is killed at once, and started again',
    patches: [
      {
        file: 'src/store/sqlite/checkpoints.ts',
        find: 'this.#truncation = this.#truncateIn(FIRST_TRUNCATION_MS);',
        put: 'this.#truncation = this.#truncateIn(TRUNCATION_INTERVAL_MS);',
      },
    ],
  },
  {
    name: 'a lead that was closed by hand keeps the claim of an open one',
    suite: REMAINS,
    caughtBy: 'EraseLead',
    patches: [
      {
        file: 'src/store/sqlite/contact-claims.ts',
        find: 'for (const isOpen of [true, false]) $FREE',
        put: 'for (const isOpen of [false]) $FREE',
      },
    ],
  },
  {
    name: 'a lead that was closed by hand is not found once its contact has another',
    inSoak: true,
    suite: REMAINS,
    caughtBy: 'EraseContact',
    patches: [
      {
        file: 'src/store/sqlite/contact-claims.ts',
        find: 'insertIfMissing.run(studioNumber, entry, leadNumber);',
        put: '',
      },
    ],
  },
];

/** The same on MongoDB. */
export const MONGO_ERASURE_BUGS: readonly PlantedBug[] = [
  {
    name: 'on MongoDB, an erased lead keeps its claims',
    suite: ON_MONGO,
    caughtBy: ERASED_LEAD,
    patches: [
      {
        file: MONGO,
        find: '{ updatedAt: time, erasedAt: time, openContactKey: $CLAIM }',
        put: '{ updatedAt: time, erasedAt: time }',
      },
    ],
  },
  {
    name: 'on MongoDB, a corrected lead is not found by its former contact',
    suite: ON_MONGO,
    caughtBy: FORMER,
    patches: [
      {
        file: 'src/store/mongo/documents.ts',
        find: '[...new Set([...formerClaimsIn(claims), ...added])]',
        put: 'formerClaimsIn(claims)',
      },
    ],
  },
  {
    name: 'on MongoDB, an erased lead keeps its note',
    suite: ON_MONGO,
    caughtBy: 'an erased document has no personal data',
    patches: [
      {
        file: MONGO,
        find: 'const PERSONAL = { $$$BEFORE, note: 1, $$$AFTER } as const;',
        put: 'const PERSONAL = { $$$BEFORE, $$$AFTER } as const;',
      },
    ],
  },
];
