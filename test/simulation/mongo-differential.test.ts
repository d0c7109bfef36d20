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
  type UpdateResult,
  UUID,
} from 'mongodb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWithMongo } from '../support/mongodb.ts';
import { sizeOf } from '../tools/size-of.ts';
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
const path = fc.constantFrom('a', 'k.t', 'h', 'h.t', 'k.u');

const document = fc
  .record({ _id: id, s: fc.constantFrom('x', 'x', 'y'), a: value, k: value, h: value }, { requiredKeys: ['_id', 's'] })
  .map((each) => each as Document);

const condition: fc.Arbitrary<unknown> = fc.oneof(
  scalar,
  fc.record({ $in: fc.array(scalar, { maxLength: 3 }) }),
  fc.record({ $nin: fc.array(scalar, { maxLength: 2 }) }),
  fc.record({ $exists: fc.boolean() }),
  fc.record({ $size: fc.nat(2) }),
  fc.record({ $in: fc.constantFrom([/^a/], [/^b/, 'ä']) }),
  fc
    .tuple(fc.constantFrom('$ne', '$eq', '$lt', '$lte', '$gt', '$gte'), scalar)
    .map(([name, each]) => ({ [name]: each })),
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
const several = fc.tuple(fc.constantFrom('$or', '$and'), fc.array(simple, { minLength: 1, maxLength: 3 }));
const filter: fc.Arbitrary<Document> = fc.oneof(
  { weight: 6, arbitrary: simple },
  { weight: 2, arbitrary: several.map(([name, filters]) => ({ [name]: filters })) },
);

const push = fc.record({ $each: fc.array(scalar, { minLength: 1, maxLength: 3 }), $slice: fc.constantFrom(-1, -3) });
const update: fc.Arbitrary<Document> = fc.oneof(
  fc.tuple(path, value, path).map(([field, each, other]) => ({ $set: { [field]: each }, $unset: { [other]: 1 } })),
  fc.tuple(path, value).map(([field, each]) => ({ $set: { [field]: each } })),
  fc.tuple(fc.constantFrom('a', 'k', 'h'), push).map(([field, each]) => ({ $push: { [field]: each } })),
);

const fields = fc.constantFrom({}, { a: 0, h: 0 }, { 'k.t': 1 }, { h: 1, 'k.t': 1 }, { _id: 1 }, { 'h.t': 1 });
const order = fc.constantFrom({ _id: 1 }, { _id: -1 }, { a: 1, _id: 1 }, { a: -1, _id: 1 }, { 'k.t': 1, _id: 1 });
const index = fc.constantFrom<Document>(
  { key: { s: 1, a: 1 }, name: 'unique', unique: true },
  { key: { s: 1, 'k.t': 1 }, name: 'nested', unique: true },
  { key: { h: 1 }, name: 'partial', unique: true, partialFilterExpression: { s: 'y' } },
  { key: { h: 1 }, name: 'plain' },
  { key: { s: 1, a: 1 }, name: 'other name', unique: true },
  { key: { h: 1 }, name: 'unique', unique: true },
);

interface Command {
  readonly words: string;
  readonly act: (collection: Collection<Document>) => Promise<unknown>;
}

/** A kind of command, with random values. */
function command<Given>(
  title: string,
  weight: number,
  given: fc.Arbitrary<Given>,
  act: (collection: Collection, given: Given) => Promise<unknown>,
): { readonly weight: number; readonly arbitrary: fc.Arbitrary<Command> } {
  const words = (each: Given) => `${title} ${BSON.EJSON.stringify({ each })}`;
  const arbitrary = given.map((each) => ({
    words: words(each),
    act: (collection: Collection) => act(collection, each),
  }));
  return { weight, arbitrary };
}

const bsonOf = (each: Document) => BSON.deserialize(BSON.serialize(each));
const countsOf = ({ matchedCount, modifiedCount, upsertedCount }: UpdateResult) => [
  ...[matchedCount, modifiedCount, upsertedCount],
];

const commands = fc.array(
  fc.oneof(
    command(
      'insert',
      4,
      fc.record({ documents: fc.array(document, { minLength: 1, maxLength: 4 }), ordered: fc.boolean() }),
      async (collection, { documents, ordered }) =>
        (await collection.insertMany(documents.map((each) => ({ ...each })) as never, { ordered })).insertedCount,
    ),
    command('update', 4, fc.record({ _id: id, where: simple, update }), async (collection, { _id, where, update }) =>
      countsOf(await collection.updateOne({ ...where, _id } as never, update)),
    ),
    command('update many', 1, filter, async (collection, where) =>
      countsOf(await collection.updateMany(where, { $set: { u: 1 } })),
    ),
    command('upsert', 1, fc.record({ _id: id, v: scalar }), async (collection, { _id, v }) =>
      countsOf(await collection.updateOne({ _id } as never, { $set: { v }, $setOnInsert: { k: 1 } }, { upsert: true })),
    ),
    command('delete', 1, filter, async (collection, where) => (await collection.deleteMany(where)).deletedCount),
    command('find', 5, fc.record({ filter, fields }), async (collection, { filter, fields }) => {
      const found = await collection.find(filter, { projection: fields }).toArray();
      return found.map(bsonOf).toSorted((a, b) => a._id.n - b._id.n);
    }),
    command('list', 3, fc.record({ filter, order, limit: fc.nat(3) }), async (collection, { filter, order, limit }) =>
      (
        await collection
          .find(filter)
          .sort(order as never)
          .limit(limit)
          .toArray()
      ).map(bsonOf),
    ),
    command('count', 1, filter, (collection, where) => collection.countDocuments(where, { limit: 2 })),
    command('create index', 2, index, (collection, { key, ...options }) =>
      collection.createIndex(key, options).then(() => 'done'),
    ),
    command('list indexes', 1, fc.constant(0), async (collection) =>
      (await collection.indexes()).map(({ name, unique = false }) => `${name} ${unique}`).toSorted(),
    ),
  ),
  { minLength: 4, maxLength: MAX_COMMANDS },
);

/** Where the simulated replica set follows MongoDB, and FerretDB does not: what FerretDB answers to a command. */
const DIFFERENCES: readonly { readonly reason: string; readonly of: RegExp; readonly real: unknown }[] = [
  { reason: 'it calls duplicates in an index that is built an internal error', of: /^create/, real: { refused: 1 } },
  { reason: 'it refuses to remove a field of what is no document', of: /^update .*\$unset/, real: { refused: 28 } },
  { reason: 'it cannot parse a field of what is no document, at times', of: /^update .*\$set/, real: { refused: 9 } },
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

  test('have the same results on the simulated replica set', { timeout: 600_000 + RUNS * 200 }, async () => {
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
