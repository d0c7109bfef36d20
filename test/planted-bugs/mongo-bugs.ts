import type { PlantedBug } from './planted-bug.ts';

const STORE = 'test/contract/mongo-store.test.ts';
const LEADS = 'src/store/mongo/leads.ts';

/** Faults of the store on MongoDB. */
export const MONGO_BUGS: readonly PlantedBug[] = [
  {
    name: 'the contact is looked at before the key',
    suite: STORE,
    caughtBy: 'a retry is replayed and not told that its own lead is in the way',
    patches: [
      {
        file: LEADS,
        find: '    // The two were not read at the same moment',
        put: `    if (byContact) return { kind: 'already-open', leadId: byContact._id.id.toString() };
    // The two were not read at the same moment`,
      },
    ],
  },
  {
    name: 'the index of keys is not unique',
    suite: STORE,
    caughtBy: 'one key with 50 different bodies makes one lead, the rest are conflicts',
    patches: [
      {
        file: 'src/store/mongo/indexes.ts',
        find: "key: { studioId: 1, 'idempotency.key': 1 }, unique: true",
        put: "key: { studioId: 1, 'idempotency.key': 1 }, unique: false",
      },
    ],
  },
  {
    name: 'the index of contacts is not unique',
    suite: STORE,
    caughtBy: 'another key for a contact with an open lead names that lead, and nothing is written',
    patches: [
      {
        file: 'src/store/mongo/indexes.ts',
        find: 'key: { studioId: 1, openContactKey: 1 }, unique: true',
        put: 'key: { studioId: 1, openContactKey: 1 }, unique: false',
      },
    ],
  },
  {
    name: 'a key with other data is a replay',
    suite: STORE,
    caughtBy: 'the same key with other data is a conflict, and nothing is written',
    patches: [
      {
        file: LEADS,
        find: 'return sameData(fingerprintOf(own), claims.fingerprint)\n        ?',
        put: 'return own\n        ?',
      },
    ],
  },
  {
    name: 'closing a lead frees its key',
    suite: STORE,
    caughtBy: 'a replay answers the lead as it is now, also after it was closed and the contact went to another',
    patches: [
      {
        file: LEADS,
        find: '{ $set: { stage, updatedAt, openContactKey } }',
        put: "{ $set: { stage, updatedAt, openContactKey, ...(stage === 'won' && { 'idempotency.key': _id.id }) } }",
      },
    ],
  },
  {
    name: 'a lead is moved, whatever it has become since it was read',
    suite: STORE,
    caughtBy: '20 moves of one lead at once each get an updatedAt of their own, and the highest stays',
    patches: [
      {
        file: LEADS,
        find: '{ studioId, _id, stage: lead.stage, updatedAt: lead.updatedAt }',
        put: '{ studioId, _id }',
      },
    ],
  },
  {
    name: "another studio's lead is found by its id",
    suite: STORE,
    caughtBy: "another studio's leads are never seen",
    patches: [
      {
        file: LEADS,
        find: '{ studioId: { $in: studioIds }, _id: { $in: [...keys] } }',
        put: "{ '_id.id': { $in: keys.map(({ id }) => id) } }",
      },
      { file: LEADS, find: '[nameOf(document._id), leadOf', put: '[document._id.id.toString(), leadOf' },
      { file: LEADS, find: 'leadsThere.get(nameOf(key))', put: 'leadsThere.get(key.id.toString())' },
    ],
  },
  {
    name: 'a page begins with the last lead of the one before',
    suite: STORE,
    caughtBy: 'there are never more than the limit, and the pages make the whole',
    patches: [{ file: LEADS, find: '{ $lt: leadKey(studioId, before) }', put: '{ $lte: leadKey(studioId, before) }' }],
  },
  {
    name: 'what was found by a secret is remembered',
    suite: STORE,
    caughtBy: 'a replaced secret is dead at once, for every process',
    patches: [
      {
        file: 'src/store/mongo/api-keys.ts',
        find: 'const key = await keysBySecret.ask(secretSha256, deadline);',
        put: `const key = seen.get(hexOf(secretSha256)) ?? (await keysBySecret.ask(secretSha256, deadline));
              if (key) seen.set(hexOf(secretSha256), key);`,
      },
      {
        file: 'src/store/mongo/api-keys.ts',
        find: 'const turns = new Turns();',
        put: 'const turns = new Turns();\n  const seen = new Map<string, ApiKey>();',
      },
    ],
  },
];
