import type { PlantedBug } from './planted-bug.ts';

const ON_SQLITE = 'test/contract/sqlite-store.test.ts';
const ON_MONGODB = 'test/contract/mongo-store.test.ts';
const BY_RPC = 'test/integration/update-lead.test.ts';
const IN_SQLITE = 'src/store/sqlite/lead-updates.ts';
const IN_MONGODB = 'src/store/mongo/lead-updates.ts';

const FREES = 'of an open lead: the former contact becomes free and the new one taken';
const ORIGINAL = 'a replay returns the original data, whatever was corrected since, even after a restart';
const REOPENED = 'a reopening during a correction claims the corrected contact';

/** Faults of corrections on SQLite, and of what both stores share. */
export const UPDATE_BUGS: readonly PlantedBug[] = [
  {
    name: 'the former contact of a corrected lead stays claimed',
    suite: ON_SQLITE,
    caughtBy: FREES,
    patches: [
      {
        file: IN_SQLITE,
        find: 'claimed.free(studio, [...before, ...wanted], itself);',
        put: 'claimed.free(studio, wanted, itself);',
      },
    ],
  },
  {
    name: 'each correction overwrites the original data of a lead',
    suite: ON_SQLITE,
    caughtBy: ORIGINAL,
    patches: [{ file: IN_SQLITE, text: 'original = coalesce(original, ?7)', put: 'original = ?7' }],
  },
  {
    name: 'a correction compares the expected time before the write only',
    suite: BY_RPC,
    caughtBy: 'succeeds once of 10 calls that expect the same time',
    patches: [
      {
        file: IN_SQLITE,
        find: "if (expectedUpdatedAt && $DIFFERS) return { kind: 'stale' };",
        put: '',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a lead corrected concurrently is reopened with the claims of its former contact',
    suite: ON_SQLITE,
    caughtBy: REOPENED,
    patches: [
      {
        file: 'src/store/sqlite/leads.ts',
        find: "if (!isSameContact(lead.contact, claims.contact)) return { kind: 'other-contact' };",
        put: '',
      },
    ],
  },
  {
    name: 'a correction refuses the current source of a lead once it is disabled',
    suite: BY_RPC,
    caughtBy: 'accepts only an enabled source of the studio, or the current one of the lead',
    patches: [
      {
        file: 'src/usecases/update-lead.ts',
        find: "typeof sourceId === 'string' && sourceId !== lead.sourceId",
        put: "typeof sourceId === 'string'",
      },
    ],
    inSoak: true,
  },
];

/** The same on MongoDB. */
export const UPDATE_MONGO_BUGS: readonly PlantedBug[] = [
  {
    name: 'on MongoDB, the corrected contact of an open lead is not claimed',
    suite: ON_MONGODB,
    caughtBy: FREES,
    patches: [{ file: IN_MONGODB, find: "...(corrected.includes('contact') && claimed)", put: '...{}' }],
  },
  {
    name: 'a retried correction whose reply was lost is refused as stale',
    suite: 'test/e2e/mongo-failures.test.ts',
    caughtBy: 'a correction that is written, but loses the reply, is written once, whatever the response',
    patches: [{ file: 'src/store/mongo/apply-once.ts', find: 'applied.some((each) => each.equals(id))', put: 'false' }],
    inSoak: true,
  },
  {
    name: 'a repeated correction is refused because of its own update',
    suite: 'test/integration/repeated-requests.test.ts',
    caughtBy:
      'a repeated correction is not refused because of the time that it expected, or of a source disabled since',
    patches: [{ file: 'src/usecases/update-lead.ts', find: 'if (isRepetition) return lead;', put: '' }],
  },
  {
    name: 'a correction takes a contact although an index is missing',
    suite: 'test/contract/mongo-indexes.test.ts',
    caughtBy:
      'once a core has noticed that another index is in the place of openContact, no lead takes a key or a contact',
    patches: [
      {
        file: 'src/store/mongo/lead-updates.ts',
        find: "if (isOpen(lead.stage) && corrected.includes('contact')) await indexes.expectValid('leads');",
        put: '',
      },
    ],
  },
];
