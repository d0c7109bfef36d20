import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import {
  BSON,
  type Collection,
  type Document,
  Double,
  Int32,
  Long,
  MongoBulkWriteError,
  MongoClient,
  UUID,
} from 'mongodb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWithMongo } from '../support/mongodb.ts';
import { sizeOf } from '../support/size-of.ts';
import type { ReplicaSet } from './replica-set/replica-set.ts';
import { replicaSetOnPorts } from './replica-set-on-ports.ts';

/** The number of random sequences of commands. */
const RUNS = sizeOf('DIFFERENTIAL_RUNS', { usual: 60, soak: 3000 });
const MAX_COMMANDS = 14;

/** Values of the kinds that the product stores, few, so that they often meet. */
const VALUES: readonly unknown[] = [
  ...[null, 'a', 'b', 'ä', '🦉', '', true, false, 0, 1, 2, -1],
  ...[new Double(1), Long.fromNumber(2), new Int32(1), new Double(1.5)],
  ...[new Date(0), new Date(1), new Date(8.64e15), new UUID('018f0000-0000-7000-8000-000000000001')],
  ...[new UUID('018f0000-0000-7000-8000-000000000002'), new BSON.Binary(Buffer.from('a'))],
  ...[[], ['a'], ['a', 'b'], ['b', null], [{ t: 1 }, { t: 2 }], {}, { t: 1 }, { t: 'a' }],
];

const value = fc.constantFrom(...VALUES);
const scalar = fc.constantFrom(...VALUES.filter((each) => !Array.isArray(each)));
const id = fc.nat(7).map((n) => ({ s: n < 4 ? 'one' : 'two', n }));
const name = fc.constantFrom('a', 'k', 'h');
const path = fc.constantFrom('a', 'k.t', 'h', 'h.t', 'k.u');

const document = fc
  .record({ _id: id, s: fc.constantFrom('x', 'x', 'y'), a: value, k: value, h: value }, { requiredKeys: ['_id', 's'] })
  .map((each) => each as Document);

const condition: fc.Arbitrary<unknown> = fc.oneof(
  scalar,
  fc.record({ $in: fc.array(scalar, { maxLength: 3 }) }),
  fc.record({ $nin: fc.array(scalar, { maxLength: 2 }) }),
  fc.record({ $ne: scalar }),
  fc.record({ $eq: value }),
  fc.record({ $exists: fc.boolean() }),
  fc.record({ $size: fc.nat(2) }),
  fc.record({ $in: fc.constantFrom([/^a/], [/^b/, 'ä']) }),
  ...['$lt', '$lte', '$gt', '$gte'].map((operator) => scalar.map((each) => ({ [operator]: each }))),
  fc.record({ $gte: scalar, $lt: scalar }),
  scalar.map((each) => ({ $not: { $gt: each } })),
);

const simple: fc.Arbitrary<Document> = fc.oneof(
  fc.constant({}),
  id.map((_id) => ({ _id })),
  fc.tuple(path, condition).map(([field, wanted]) => ({ s: 'x', [field]: wanted })),
  fc.tuple(path, condition).map(([field, wanted]) => ({ [field]: wanted })),
  id.map((_id) => ({ _id: { $gt: _id } })),
  fc.array(id, { maxLength: 3 }).map((ids) => ({ _id: { $in: ids } })),
);
const filter: fc.Arbitrary<Document> = fc.oneof(
  { weight: 6, arbitrary: simple },
  { weight: 1, arbitrary: fc.array(simple, { minLength: 1, maxLength: 3 }).map(($or) => ({ $or })) },
  { weight: 1, arbitrary: fc.array(simple, { minLength: 1, maxLength: 2 }).map(($and) => ({ $and })) },
);

const push = fc.record({ $each: fc.array(scalar, { minLength: 1, maxLength: 3 }), $slice: fc.constantFrom(-1, -3) });
const update: fc.Arbitrary<Document> = fc.oneof(
  fc.tuple(path, value).map(([field, each]) => ({ $set: { [field]: each } })),
  fc.tuple(path, value, path).map(([field, each, other]) => ({ $set: { [field]: each }, $unset: { [other]: 1 } })),
  fc.tuple(name, push).map(([field, each]) => ({ $push: { [field]: each } })),
  path.map((field) => ({ $unset: { [field]: 1 } })),
);

const projection = fc.constantFrom(
  {},
  { a: 0, h: 0 },
  { a: 1 },
  { 'k.t': 1 },
  { h: 1, 'k.t': 1 },
  { _id: 1 },
  { 'h.t': 1 },
);
const sort = fc.constantFrom({ _id: 1 }, { _id: -1 }, { a: 1, _id: 1 }, { a: -1, _id: 1 }, { 'k.t': 1, _id: 1 });

type Act = (collection: Collection<Document>) => Promise<unknown>;
interface Command {
  readonly words: string;
  readonly act: Act;
}

const command = <Given extends readonly unknown[]>(
  title: string,
  given: fc.Arbitrary<Given>,
  act: (collection: Collection<Document>, ...values: Given) => Promise<unknown>,
): fc.Arbitrary<Command> =>
  given.map((values) => ({
    words: `${title} ${values.map((each) => BSON.EJSON.stringify({ each }).slice(8, -1)).join(' ')}`,
    act: (collection) => act(collection, ...values),
  }));

const INDEXES: readonly Document[] = [
  { key: { s: 1, a: 1 }, name: 'unique', unique: true },
  { key: { s: 1, 'k.t': 1 }, name: 'nested', unique: true },
  { key: { h: 1 }, name: 'partial', unique: true, partialFilterExpression: { s: 'y' } },
  { key: { h: 1 }, name: 'plain' },
  { key: { s: 1, a: 1 }, name: 'other name', unique: true },
  { key: { h: 1 }, name: 'unique', unique: true },
];

const bsonOf = (each: Document) => BSON.deserialize(BSON.serialize(each));
const inOrderOfIds = (documents: readonly Document[]) => documents.map(bsonOf).toSorted((a, b) => a._id.n - b._id.n);

const commands = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: command(
        'insert',
        fc.tuple(fc.array(document, { minLength: 1, maxLength: 4 }), fc.boolean()),
        (collection, documents, ordered) =>
          collection
            .insertMany(documents.map((each) => ({ ...each })) as never, { ordered })
            .then(({ insertedCount }) => insertedCount),
      ),
    },
    {
      weight: 4,
      arbitrary: command('update', fc.tuple(id, simple, update), (collection, _id, where, change) =>
        collection.updateOne({ ...where, _id } as never, change).then(countsOf),
      ),
    },
    {
      weight: 1,
      arbitrary: command(
        'update many',
        fc.tuple(filter, fc.constantFrom({ $set: { u: 1 } }, { $unset: { u: 1 } })),
        (collection, where, change) => collection.updateMany(where, change as never).then(countsOf),
      ),
    },
    {
      weight: 1,
      arbitrary: command('upsert', fc.tuple(id, scalar), (collection, _id, v) =>
        collection.updateOne({ _id } as never, { $set: { v } }, { upsert: true }).then(countsOf),
      ),
    },
    {
      weight: 1,
      arbitrary: command('delete', fc.tuple(filter), (collection, where) =>
        collection.deleteMany(where).then(({ deletedCount }) => deletedCount),
      ),
    },
    {
      weight: 5,
      arbitrary: command('find', fc.tuple(filter, projection), (collection, where, fields) =>
        collection.find(where, { projection: fields }).toArray().then(inOrderOfIds),
      ),
    },
    {
      weight: 3,
      arbitrary: command('list', fc.tuple(filter, sort, fc.nat(3)), (collection, where, order, limit) =>
        collection
          .find(where)
          .sort(order as never)
          .limit(limit)
          .toArray()
          .then((found) => found.map(bsonOf)),
      ),
    },
    {
      weight: 1,
      arbitrary: command('count', fc.tuple(filter, fc.integer({ min: 1, max: 3 })), (collection, where, limit) =>
        collection.countDocuments(where, { limit }),
      ),
    },
    {
      weight: 2,
      arbitrary: command('create index', fc.tuple(fc.constantFrom(...INDEXES)), (collection, { key, ...options }) =>
        collection.createIndex(key, options).then(() => 'done'),
      ),
    },
    {
      weight: 1,
      arbitrary: command(
        'drop index',
        fc.tuple(fc.constantFrom('unique', 'nested', 'partial', 'plain')),
        (collection, index) => collection.dropIndex(index).then(() => 'done'),
      ),
    },
    {
      weight: 1,
      arbitrary: command('list indexes', fc.tuple(), (collection) =>
        collection.indexes().then((found) => found.map(({ name, unique = false }) => `${name} ${unique}`).toSorted()),
      ),
    },
  ),
  { minLength: 4, maxLength: MAX_COMMANDS },
);

const countsOf = ({
  matchedCount,
  modifiedCount,
  upsertedCount,
}: {
  matchedCount: number;
  modifiedCount: number;
  upsertedCount: number;
}) => [matchedCount, modifiedCount, upsertedCount];

/** Where the simulated replica set follows MongoDB, and FerretDB does not: what FerretDB answers to a command. */
const DIFFERENCES: readonly { readonly reason: string; readonly of: RegExp; readonly real: unknown }[] = [
  { reason: 'it calls duplicates in an index that is built an internal error', of: /^create/, real: { refused: 1 } },
  { reason: 'it refuses to remove a field of what is no document', of: /^update .*\$unset/, real: { refused: 28 } },
  {
    reason: 'it says at times that it cannot parse a field of what is no document',
    of: /^update .*\$set/,
    real: { refused: 9 },
  },
];

/** The result of a command, or its errors: their codes, and where they are in the command. */
async function outcomeOf({ act }: Command, collection: Collection<Document>): Promise<unknown> {
  try {
    return await act(collection);
  } catch (error) {
    if (error instanceof MongoBulkWriteError)
      return {
        refused: [error.writeErrors].flat().map(({ index, code }) => [index, code]),
        inserted: error.insertedCount,
      };
    const { code } = error as { readonly code?: number };
    if (code === undefined) throw error;
    return { refused: code };
  }
}

describeWithMongo('commands', (mongoUrl) => {
  let set: ReplicaSet;
  const clients: MongoClient[] = [];
  beforeAll(async () => {
    set = await replicaSetOnPorts();
    for (const url of [set.url('differential'), mongoUrl()]) clients.push(await new MongoClient(url).connect());
  });
  afterAll(async () => {
    for (const client of clients) await client.close();
    set?.stop();
  });

  test('have the same results on the simulated replica set', async () => {
    let number = 0;
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        number += 1;
        const [simulated, real] = clients.map((client) =>
          client.db('differential').collection(`c${number}-${process.pid}`),
        );
        if (!simulated || !real) throw new Error('no client');
        for (const each of sequence) {
          const one: unknown = await outcomeOf(each, simulated);
          const other: unknown = await outcomeOf(each, real);
          if (isDeepStrictEqual(one, other)) continue;
          // From then on the two have different documents.
          if (DIFFERENCES.some(({ of, real }) => of.test(each.words) && isDeepStrictEqual(other, real))) return;
          expect.fail(
            `${sequence.map(({ words }) => words).join('\n')}\n\n${each.words}\nsimulated ${show(one)}\nreal      ${show(other)}`,
          );
        }
      }),
      { numRuns: RUNS },
    );
  });
});

const show = (outcome: unknown): string => BSON.EJSON.stringify({ outcome });
