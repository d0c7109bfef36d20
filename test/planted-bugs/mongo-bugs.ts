import type { PlantedBug } from './planted-bug.ts';

const STORE = 'test/contract/mongo-store.test.ts';
const BATCHES_SUITE = 'test/integration/mongo-batches.test.ts';
const IN_ONE_INSERT =
  'of creations in one insert, each has the outcome of a single one, whatever index its neighbours violate';
const LEADS = 'src/store/mongo/leads.ts';
const INDEXES = 'test/contract/mongo-indexes.test.ts';
const CONCERNS = 'test/contract/mongo-concerns.test.ts';
const EACH_COMMAND = 'each command requires a majority and its disks: readConcernLevel=local&w=1&journal=false';
const CONNECTION = 'src/store/mongo/connection.ts';
const ADDRESS = 'test/contract/mongo-address.test.ts';
const READINESS = 'test/contract/mongo-readiness.test.ts';
const SESSIONS = 'test/contract/mongo-sessions.test.ts';
const APPLY_ONCE = 'src/store/mongo/apply-once.ts';
const REFUSAL = 'src/store/mongo/server-refusal.ts';
const REFUSALS = 'test/contract/mongo-refusals.test.ts';

/** Faults of the store on MongoDB. */
export const MONGO_BUGS: readonly PlantedBug[] = [
  {
    name: 'on MongoDB, the contact is checked before the idempotency key',
    suite: STORE,
    caughtBy: 'the same key with the same data is a replay of the first lead',
    patches: [
      {
        file: LEADS,
        find: 'const early = await byKey.submit(key, deadline);',
        put: 'const early = null as LeadDocument | null;',
      },
      { file: LEADS, find: 'if (own) $THEN', put: 'if (contact) return alreadyOpen(contact); if (own) $THEN' },
    ],
  },
  {
    name: 'on MongoDB, the index of idempotency keys is not unique',
    suite: STORE,
    caughtBy: 'one key with 50 different bodies creates one lead; the rest are conflicts',
    patches: [
      {
        file: 'src/store/mongo/indexes.ts',
        find: "{ collection: 'leads', name: $NAME, key: { studioId: 1, 'idempotency.key': 1 }, unique: true }",
        put: "{ collection: 'leads', name: $NAME, key: { studioId: 1, 'idempotency.key': 1 }, unique: false }",
      },
    ],
  },
  {
    name: 'on MongoDB, the index of open contacts is not unique',
    suite: STORE,
    caughtBy: 'another key for a contact with an open lead names that lead, and nothing is written',
    patches: [
      {
        file: 'src/store/mongo/indexes.ts',
        find: "{ collection: 'leads', name: $NAME, key: { studioId: 1, openContactKey: 1 }, unique: true }",
        put: "{ collection: 'leads', name: $NAME, key: { studioId: 1, openContactKey: 1 }, unique: false }",
      },
    ],
    inSoak: true,
  },
  {
    name: 'a creation does not rely on the last check of the indexes',
    suite: INDEXES,
    caughtBy:
      'once a core has noticed that another index is in the place of idempotencyKey, no lead takes a key or a contact',
    patches: [
      {
        file: LEADS,
        find: 'const { call, indexes } = connection;',
        put: 'const { call } = connection; const indexes = { expectValid: async (_: string) => {} };',
      },
    ],
  },
  {
    name: 'a check of the indexes outlives the connection',
    suite: INDEXES,
    caughtBy: 'precede the first creation after a reconnection',
    patches: [{ file: 'src/store/mongo/index-keeper.ts', find: 'this.#checks.clear();', put: '' }],
  },
  {
    name: 'on MongoDB, a partial index is accepted',
    suite: INDEXES,
    caughtBy:
      'with an index that is partial nothing is created, the check reports it, and creations succeed once it is dropped',
    patches: [
      {
        file: 'src/store/mongo/indexes.ts',
        find: "found.partialFilterExpression !== undefined && 'is partial'",
        put: 'false',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a write is acknowledged by one server only',
    suite: CONCERNS,
    caughtBy: EACH_COMMAND,
    patches: [{ file: CONNECTION, find: "new WriteConcern('majority', undefined, true)", put: 'new WriteConcern(1)' }],
  },
  {
    name: 'reads return data that a failover can roll back',
    suite: CONCERNS,
    caughtBy: EACH_COMMAND,
    patches: [{ file: CONNECTION, find: "new ReadConcern('majority')", put: "new ReadConcern('local')" }],
  },
  {
    name: 'the connection string overrides the read and write concerns',
    suite: CONCERNS,
    caughtBy: EACH_COMMAND,
    patches: [{ file: CONNECTION, find: 'client.db($NAME, CONCERNS)', put: 'client.db($NAME)' }],
  },
  {
    name: 'a core reads from a secondary to which its address leads directly',
    suite: ADDRESS,
    caughtBy: 'a secondary is neither read nor reported as ready',
    patches: [
      {
        file: 'src/store/mongo/reconnecting-client.ts',
        find: 'if (refusal !== undefined) throw new StoreUnavailable(refusal);',
        put: '',
      },
    ],
  },
  {
    name: 'what a server says of itself counts only when it is connected first',
    suite: ADDRESS,
    caughtBy: 'is used while it is the primary, and refused from when it steps down until it is elected again',
    patches: [
      {
        file: 'src/store/mongo/reconnecting-client.ts',
        find: "client.on('topologyDescriptionChanged', $LISTENER)",
        put: "client.once('topologyDescriptionChanged', $LISTENER)",
      },
    ],
  },
  {
    name: 'a slash in the options of an address counts as the start of a name',
    suite: 'test/unit/database-name.test.ts',
    caughtBy: 'without a name is lead-intake: mongodb://h?tls=true&tlsCAFile=/etc/ssl/ca.pem',
    patches: [
      {
        file: 'src/store/mongo/database-name.ts',
        find: "pathname.length > 1 || searchParams.has('dbName')",
        put: "/^[^/]+:\\/\\/[^/]+\\/[^?]/.test(url) || searchParams.has('dbName')",
      },
    ],
  },
  {
    name: 'on MongoDB, a core is ready while no write succeeds',
    suite: READINESS,
    caughtBy: 'fails while no write succeeds: a majority that did not confirm',
    patches: [{ file: CONNECTION, find: 'await reconnectingClient.run(() => writes.check());', put: '' }],
  },
  {
    name: 'on MongoDB, an update that matched nothing proves that writes succeed',
    suite: READINESS,
    caughtBy: 'takes an update that matched nothing for no proof',
    patches: [{ file: 'src/store/mongo/write-check.ts', find: "name === 'insert'", put: "name !== 'find'" }],
  },
  {
    name: 'each command knows only the times of its own session',
    suite: SESSIONS,
    caughtBy: 'findCredential reads nothing that is older',
    patches: [
      {
        file: 'src/store/mongo/causal-sessions.ts',
        find: 'if (this.#operationTime) session.advanceOperationTime(this.#operationTime);',
        put: '',
      },
    ],
  },
  {
    name: 'the times of a cluster that is gone are kept',
    suite: SESSIONS,
    caughtBy: 'of a cluster that is no longer there, its time is forgotten',
    patches: [
      { file: 'src/store/mongo/causal-sessions.ts', find: 'this.#remember(isForeign ? {} : session);', put: '' },
    ],
  },
  {
    name: 'the connections of a client whose server no longer answers are kept',
    suite: SESSIONS,
    caughtBy: 'a client whose server no longer answers is closed, and leaves no connection',
    patches: [{ file: 'src/store/mongo/reconnecting-client.ts', find: 'if (isClosed) return;', put: 'return;' }],
  },
  {
    name: 'on MongoDB, the acknowledgements of a call are several commands',
    suite: 'test/contract/mongo-acknowledgements.test.ts',
    caughtBy: 'the most acknowledgements of one call are one command, which the server ends before the deadline',
    patches: [
      {
        file: 'src/store/mongo/lead-changes.ts',
        find: 'return (await leads.bulkWrite(updates, options)).modifiedCount;',
        put: `const [first, rest] = [updates.slice(0, 1), updates.slice(1)];
        await leads.bulkWrite(rest, options);
        return (await leads.bulkWrite(first, options)).modifiedCount + rest.length;`,
      },
    ],
  },
  {
    name: 'on MongoDB, the use of a key is not stored after the clock was set back',
    suite: STORE,
    caughtBy: 'is stored after the clock was set back',
    patches: [
      {
        file: 'src/store/mongo/api-keys.ts',
        find: '{ $gt: unlessSince, $lte: now }',
        put: '{ $gt: unlessSince }',
      },
    ],
  },
  {
    name: 'on MongoDB, closing a lead frees its idempotency key',
    suite: STORE,
    caughtBy: 'a replay returns the current lead, even after it was closed and another lead has the contact',
    patches: [
      {
        file: LEADS,
        find: 'const change = { stage, updatedAt, $$$CLAIMS };',
        put: "const change = { stage, updatedAt, $$$CLAIMS, ...(stage === 'won' && { 'idempotency.key': _id.id }) };",
      },
    ],
    inSoak: true,
  },
  {
    name: 'a stage change overwrites a lead that changed since it was read',
    suite: STORE,
    caughtBy: '20 concurrent moves of one lead get different values of updatedAt, and the highest is stored',
    patches: [
      {
        file: 'src/store/mongo/lead-changes.ts',
        find: '{ stage: found.stage, updatedAt: found.updatedAt, ...sameMark(found) }',
        put: '{}',
      },
    ],
    inSoak: true,
  },
  {
    name: 'on MongoDB, a lead of another studio is found by its id',
    suite: STORE,
    caughtBy: "another studio's leads are never seen",
    patches: [
      {
        file: LEADS,
        find: '{ studioId: { $in: studioIds }, _id: { $in: [...keys] } }',
        put: "{ '_id.id': { $in: keys.map(({ id }) => id) } }",
      },
      { file: LEADS, find: '[nameOf(document._id), $LEAD]', put: '[document._id.id.toString(), $LEAD]' },
      { file: LEADS, find: 'documents.get(nameOf(key))', put: 'documents.get(key.id.toString())' },
    ],
    inSoak: true,
  },
  {
    name: 'a move between open stages replaces the claims',
    suite: STORE,
    caughtBy: 'a move between open stages keeps the claims',
    patches: [
      {
        file: LEADS,
        find: 'if (isOpen(before) === isOpen(stage)) return {};',
        put: '',
      },
    ],
    inSoak: true,
  },
  {
    name: 'on MongoDB, a changed region is not noted as a former one',
    suite: STORE,
    caughtBy:
      'every region that a studio had is a former one after the change, none included, also of concurrent changes',
    patches: [
      {
        file: 'src/store/mongo/directory.ts',
        find: '{ ...NOTHING_DUE, formerRegions: [...new Set(former)] }',
        put: 'NOTHING_DUE',
      },
    ],
  },
  {
    name: 'on MongoDB, a closed lead is found by the current region only',
    suite: STORE,
    caughtBy: 'a closed lead is found by the claims that it had, and by those given when it was closed',
    patches: [
      {
        file: LEADS,
        find: '[...new Set([...contactKeysIn(openContactKey), ...claims.contactKeys])]',
        put: 'claims.contactKeys',
      },
    ],
    inSoak: true,
  },
  {
    name: 'on MongoDB, a renewal of claims that release 1.1 has begun continues',
    suite: 'test/upgrade/upgrade.test.ts',
    caughtBy: 'has former regions for each renewal in progress when the first core starts, also when several do',
    patches: [
      { file: 'src/store/mongo/end-renewals.ts', find: '{ ...NOTHING_DUE, $$$REGIONS }', put: '{ $$$REGIONS }' },
    ],
  },
  {
    name: 'on MongoDB, a page repeats the last lead of the previous page',
    suite: STORE,
    caughtBy: 'a page has at most the limit, and the pages together have every lead once',
    patches: [{ file: LEADS, find: '{ $lt: leadKey(studioId, after) }', put: '{ $lte: leadKey(studioId, after) }' }],
    inSoak: true,
  },
  {
    name: 'on MongoDB, the store caches credentials by secret',
    suite: STORE,
    caughtBy: 'a replaced secret is invalid immediately, in every process',
    patches: [
      {
        file: 'src/store/mongo/api-keys.ts',
        find: 'const key = await keysBySecret.submit(secretSha256, deadline);',
        put: `const key = seen.get(hexOf(secretSha256)) ?? (await keysBySecret.submit(secretSha256, deadline));
              if (key) seen.set(hexOf(secretSha256), key);`,
      },
      {
        file: 'src/store/mongo/api-keys.ts',
        find: 'const mutex = new KeyedMutex();',
        put: 'const mutex = new KeyedMutex();\n  const seen = new Map<string, ApiKey>();',
      },
    ],
    inSoak: true,
  },
  {
    name: 'an insert whose reply is lost is retried with another id',
    suite: BATCHES_SUITE,
    caughtBy:
      'replies get lost by cut during inserts of many (1 of them): each creation is one lead, and reported as created',
    patches: [
      { file: LEADS, find: 'const document = leadDocument(lead, claims, now);', put: '' },
      {
        file: LEADS,
        find: 'const { refusal } = await inserts.submit(document, deadline);',
        put: `const document = leadDocument({ ...lead, id: crypto.randomUUID() }, claims, now);
        const { refusal } = await inserts.submit(document, deadline);`,
      },
    ],
  },
  {
    name: 'an insert stops at a refused lead, and later leads are reported as created',
    suite: BATCHES_SUITE,
    caughtBy: IN_ONE_INSERT,
    patches: [
      { file: LEADS, find: 'ordered: false', put: 'ordered: true' },
      { file: LEADS, find: '!isKnown || $ERROR', put: '$ERROR' },
    ],
  },
  {
    name: 'refusals are assigned to the first leads of an insert',
    suite: BATCHES_SUITE,
    caughtBy: IN_ONE_INSERT,
    patches: [
      {
        file: LEADS,
        find: '(refusal) => [refusal.index, refusal]',
        put: '(refusal, place) => [place, refusal]',
      },
    ],
    inSoak: true,
  },
  {
    name: 'an insert that fails as a whole is reported as created',
    suite: BATCHES_SUITE,
    caughtBy: 'an insert that fails as a whole is retried, and each creation is one lead',
    patches: [
      {
        file: LEADS,
        find: 'if (!isKnown || error.result.getWriteConcernError()) throw error;',
        put: '',
      },
    ],
  },
  {
    name: 'a further attempt undoes what others have written since',
    suite: 'test/contract/mongo-lost-replies.test.ts',
    caughtBy:
      'does not undo what somebody else wrote since: putMember, a member that somebody else removes stays removed',
    patches: [
      { file: APPLY_ONCE, find: 'applied.some((each) => each.equals(id))', put: 'false' },
      { file: APPLY_ONCE, find: '{ ...which, ...where, appliedRequests: { $ne: id } }', put: '{ ...which, ...where }' },
    ],
  },
  {
    name: 'a change is attempted again although its identity may have been dropped',
    suite: 'test/contract/mongo-lost-replies.test.ts',
    caughtBy: 'has an unknown outcome when so many changes followed that its identity may be gone',
    patches: [
      { file: APPLY_ONCE, find: 'mayBeDropped(newest, applied)', put: 'mayBeDropped(newest, applied) && false' },
    ],
  },
  {
    name: 'a command that the server refuses is sent again and again',
    suite: REFUSALS,
    caughtBy: 'is refused once, and by name: Unauthorized (13)',
    patches: [
      { file: REFUSAL, find: 'isDuplicate(error) || $REST', put: 'error.code === 13 || isDuplicate(error) || $REST' },
    ],
  },
  {
    name: 'a deadlock counts as a refusal',
    suite: REFUSALS,
    caughtBy: 'is attempted again after a passing error: 16908292',
    patches: [{ file: REFUSAL, find: "'40P01'", put: "'40P99'" }],
  },
  {
    name: 'a history is replaced without a look at it',
    suite: REFUSALS,
    caughtBy: 'a history that is a list is not replaced because of an error that it does not explain',
    patches: [{ file: APPLY_ONCE, find: 'if (record || !isReason) throw error;', put: 'if (record) throw error;' }],
  },
  {
    name: 'audit events are ordered by the clocks of their writers',
    suite: STORE,
    caughtBy: 'are in the order of the changes to a studio or key, whatever the clocks of the writers',
    patches: [
      { file: 'src/store/mongo/audit.ts', find: 'Math.max(place, event.time.getTime())', put: 'event.time.getTime()' },
    ],
  },
];
