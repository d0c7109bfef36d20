import type { PlantedBug } from './planted-bug.ts';

const STORE = 'test/contract/mongo-store.test.ts';
const BATCHES_SUITE = 'test/integration/mongo-batches.test.ts';
const LEADS = 'src/store/mongo/leads.ts';
const INDEXES = 'test/contract/mongo-indexes.test.ts';
const CONNECTION = 'src/store/mongo/connection.ts';
const ADDRESS = 'test/contract/mongo-address.test.ts';
const SESSIONS = 'test/contract/mongo-sessions.test.ts';
const APPLY_ONCE = 'src/store/mongo/apply-once.ts';

/** Faults of the store on MongoDB. */
export const MONGO_BUGS: readonly PlantedBug[] = [
  {
    name: 'a full history drops its oldest events',
    suite: STORE,
    caughtBy: 'a full history loses no event: the oldest are moved out, the newest are listed',
    patches: [{ file: 'src/store/mongo/history.ts', find: '-(FULL + MOVED_AT_ONCE)', put: '-1000' }],
  },
  {
    name: 'a creation does not rely on the last check of the indexes',
    suite: INDEXES,
    caughtBy: 'a core that finds another index in place of idempotencyKey lets no lead take a key or contact',
    patches: [
      {
        file: LEADS,
        find: 'const { call, indexes } = connection;',
        put: 'const { call } = connection; const indexes = { expectValid: async (_: string) => {} };',
      },
    ],
  },
  {
    name: 'a write is acknowledged by one server only',
    suite: ADDRESS,
    caughtBy: 'no option in the address changes the write concern, read concern or read preference',
    patches: [{ file: CONNECTION, find: "new WriteConcern('majority', undefined, true)", put: 'new WriteConcern(1)' }],
  },
  {
    name: 'each command knows only the times of its own session',
    suite: SESSIONS,
    caughtBy: 'no method reads data older than a reply received before',
    patches: [
      {
        file: 'src/store/mongo/reconnecting-client.ts',
        find: 'if (operationTime) session.advanceOperationTime(operationTime);',
        put: '',
      },
    ],
  },
  {
    name: 'an insert whose reply is lost is retried with another id',
    suite: BATCHES_SUITE,
    caughtBy: 'no lead is lost or doubled when replies to inserts get lost by cut, 4 times',
    patches: [
      { file: LEADS, find: 'const document = leadDocument(lead, keys, now, by);', put: '' },
      {
        file: LEADS,
        find: 'const { refusal } = await inserts.submit(document, deadline);',
        put: `const document = leadDocument({ ...lead, id: crypto.randomUUID() }, keys, now, by);
        const { refusal } = await inserts.submit(document, deadline);`,
      },
    ],
  },
  {
    name: 'an insert that fails as a whole is reported as created',
    suite: BATCHES_SUITE,
    caughtBy: 'an insert that fails as a whole is retried, and each creation is one lead',
    patches: [
      {
        file: 'src/store/mongo/write-each.ts',
        find: 'if (result.insertedCount + refusals.length !== documents.length) throw error;',
        put: '',
      },
      {
        file: 'src/store/mongo/write-each.ts',
        find: 'if (refusals.length === 0 || (codes && refusals.some(({ code }) => !codes.includes(code)))) throw error;',
        put: '',
      },
    ],
  },
  {
    name: 'a retry undoes later writes of others',
    suite: 'test/contract/mongo-lost-replies.test.ts',
    caughtBy:
      'a retry after a lost reply does not undo a later change: putMember, a member that somebody else removes stays removed',
    patches: [
      { file: APPLY_ONCE, find: 'applied.some((each) => each.equals(id))', put: 'false' },
      {
        file: APPLY_ONCE,
        find: '{ ...which, ...where, ...hasRoom, appliedRequests: { $ne: id } }',
        put: '{ ...which, ...where, ...hasRoom }',
      },
    ],
  },
  {
    name: 'audit events are ordered by the clocks of their writers',
    suite: STORE,
    caughtBy: "audit events keep the order of changes to a studio or key, whatever the writers' clocks",
    patches: [
      { file: 'src/store/mongo/audit.ts', find: 'Math.max(order, event.time.getTime())', put: 'event.time.getTime()' },
    ],
  },
];
