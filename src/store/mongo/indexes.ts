import { type Db, type Document, MongoServerError } from 'mongodb';

/** An index; one that is unique is what a promise rests on. */
export interface Index {
  readonly collection: string;
  readonly name: string;
  readonly key: Readonly<Record<string, 1 | -1>>;
  readonly unique: boolean;
}

/**
 * Every index. None is partial or sparse: a lead always has both of its claims, a key always has a slot. Unique ones of leads
 * begin with `studioId`, so that the collection can be sharded by it.
 */
export const INDEXES: readonly Index[] = [
  { collection: 'leads', name: 'openContact', key: { studioId: 1, openContactKey: 1 }, unique: true },
  { collection: 'leads', name: 'idempotencyKey', key: { studioId: 1, 'idempotency.key': 1 }, unique: true },
  { collection: 'apiKeys', name: 'secret', key: { secretSha256: 1 }, unique: true },
  { collection: 'apiKeys', name: 'slot', key: { studioId: 1, slot: 1 }, unique: true },
  // Those of all studios are told together.
  { collection: 'leads', name: 'changedSince', key: { 'changes.since': 1 }, unique: false },
  // Each core looks every few seconds for studios whose claims are to be renewed.
  { collection: 'studios', name: 'claimVersion', key: { claimVersion: 1 }, unique: false },
];

/** The collections with indexes. */
export const INDEXED = ['leads', 'apiKeys', 'studios'] as const;
export type Indexed = (typeof INDEXED)[number];

/** Those whose promises rest on them; elsewhere they only save time. */
export const PROMISED = ['leads', 'apiKeys'] as const satisfies readonly Indexed[];

/** An index that is not there, or not as it has to be. */
export interface IndexFault {
  readonly index: Index;
  /** What is wrong, such as "leads.slot is missing". */
  readonly says: string;
}

/** A server's code for a collection that is not there yet. */
const NAMESPACE_NOT_FOUND = 26;

/** Codes for a field of a command that a server does not know: MongoDB's own, and the one of those who speak its language. */
const UNKNOWN_FIELD = [40415, 9];

/** Makes an index, unless it is there. May be done by several processes at once, and again. */
export async function makeIndex(database: Db, { collection, name, key, unique }: Index): Promise<void> {
  await database.collection(collection).createIndex(key, { name, unique });
}

/**
 * The indexes of a collection that are not there or not as they have to be. An index does its work under any name: its key
 * and what it leaves out decide.
 */
export async function indexFaults(database: Db, collection: string): Promise<readonly IndexFault[]> {
  const there = await indexesOf(database, collection);
  return INDEXES.filter((index) => index.collection === collection).flatMap((index) => {
    const withItsKey = there.filter(({ key }) => sameKey(key, index));
    if (withItsKey.some((each) => weaknesses(each, index).length === 0)) return [];
    return [{ index, says: `${collection}.${index.name} ${saysOf(index, withItsKey, there)}` }];
  });
}

function saysOf(index: Index, withItsKey: readonly Document[], there: readonly Document[]): string {
  if (withItsKey.length > 0) {
    const each = withItsKey.map((found) => `"${found.name}" ${weaknesses(found, index).join(', ')}`);
    return `is not there as it must be: the index ${each.join('; the index ')}`;
  }
  const namesake = there.find(({ name }) => name === index.name);
  return namesake ? `is not there: the index of that name has the key ${JSON.stringify(namesake.key)}` : 'is missing';
}

const sameKey = (key: unknown, index: Index): boolean => JSON.stringify(key) === JSON.stringify(index.key);

/** What keeps an index with the right key from holding for every document, or for good. */
function weaknesses(found: Document, index: Index): string[] {
  return [
    index.unique && !found.unique && 'is not unique',
    found.partialFilterExpression !== undefined && 'is partial',
    found.sparse && 'is sparse',
    found.collation !== undefined && 'has a collation',
    found.hidden && 'is hidden',
    found.expireAfterSeconds !== undefined && 'has a TTL',
    found.buildUUID !== undefined && 'is being built',
  ].filter((weakness) => typeof weakness === 'string');
}

/** All indexes of a collection; one that is still being built holds for nothing yet, and has its `buildUUID`. */
async function indexesOf(database: Db, collection: string): Promise<readonly Document[]> {
  try {
    const listed = await listIndexes(database, collection);
    return listed.map(({ spec, buildUUID, ...ready }) => (spec ? { ...spec, buildUUID } : ready));
  } catch (error) {
    if (error instanceof MongoServerError && error.code === NAMESPACE_NOT_FOUND) return [];
    throw error;
  }
}

/** Databases whose server lists no index before it is built, and does not know how to say of one that it is not. */
const listReadyOnly = new WeakSet<Db>();

async function listIndexes(database: Db, collection: string): Promise<readonly Document[]> {
  const includeBuildUUIDs = !listReadyOnly.has(database);
  const command = { listIndexes: collection, ...(includeBuildUUIDs && { includeBuildUUIDs }), cursor: {} };
  try {
    // No collection has more indexes than go into one batch.
    const { cursor } = await database.command(command);
    return cursor.firstBatch;
  } catch (error) {
    const isUnknown = error instanceof MongoServerError && UNKNOWN_FIELD.includes(Number(error.code));
    if (!includeBuildUUIDs || !isUnknown) throw error;
    listReadyOnly.add(database);
    return listIndexes(database, collection);
  }
}
