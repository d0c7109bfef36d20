import { type Db, type Document, MongoServerError } from 'mongodb';

/** An index. Promises rely on the unique ones; the others only save time. */
export interface Index {
  readonly collection: string;
  readonly name: string;
  readonly key: Readonly<Record<string, 1 | -1>>;
  readonly unique: boolean;
}

/**
 * All indexes. None is partial or sparse: a lead always has both of its claims, a key always has a slot. The unique
 * indexes of leads begin with `studioId`, so that the collection can be sharded by it.
 */
export const INDEXES: readonly Index[] = [
  { collection: 'leads', name: 'openContact', key: { studioId: 1, openContactKey: 1 }, unique: true },
  { collection: 'leads', name: 'idempotencyKey', key: { studioId: 1, 'idempotency.key': 1 }, unique: true },
  { collection: 'apiKeys', name: 'secret', key: { secretSha256: 1 }, unique: true },
  { collection: 'apiKeys', name: 'slot', key: { studioId: 1, slot: 1 }, unique: true },
  // The change feed covers all studios.
  { collection: 'leads', name: 'changedSince', key: { 'changes.since': 1 }, unique: false },
];

/** The collections with indexes. */
export const INDEXED = ['leads', 'apiKeys'] as const;
export type Indexed = (typeof INDEXED)[number];

/** A missing or invalid index. */
export interface IndexFault {
  readonly index: Index;
  /** Such as "leads.slot is missing". */
  readonly fault: string;
}

/** The error code for a collection that does not exist. */
const NAMESPACE_NOT_FOUND = 26;

/** The error codes for an unknown field of a command: MongoDB's, and that of compatible servers. */
const UNKNOWN_FIELD = [40415, 9];

/** Creates an index unless it exists. Safe to repeat, also concurrently. */
export async function createIndex(database: Db, { collection, name, key, unique }: Index): Promise<void> {
  await database.collection(collection).createIndex(key, { name, unique });
}

/** Returns the missing or invalid indexes of a collection, by key and options; their names do not matter. */
export async function indexFaults(database: Db, collection: string): Promise<readonly IndexFault[]> {
  const found = await indexesOf(database, collection);
  return INDEXES.filter((index) => index.collection === collection).flatMap((index) => {
    const withSameKey = found.filter(({ key }) => hasKey(key, index));
    if (withSameKey.some((each) => weaknesses(each, index).length === 0)) return [];
    return [{ index, fault: `${collection}.${index.name} ${describe(index, withSameKey, found)}` }];
  });
}

function describe(index: Index, withSameKey: readonly Document[], all: readonly Document[]): string {
  if (withSameKey.length > 0) {
    const each = withSameKey.map((found) => `"${found.name}" ${weaknesses(found, index).join(', ')}`);
    return `is invalid: the index ${each.join('; the index ')}`;
  }
  const namesake = all.find(({ name }) => name === index.name);
  return namesake ? `is missing: the index of that name has the key ${JSON.stringify(namesake.key)}` : 'is missing';
}

const hasKey = (key: unknown, index: Index): boolean => JSON.stringify(key) === JSON.stringify(index.key);

/** Returns why an index with the right key does not cover every document permanently. */
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

/** Returns all indexes of a collection; one with a `buildUUID` is still being built and enforces nothing. */
async function indexesOf(database: Db, collection: string): Promise<readonly Document[]> {
  try {
    const listed = await listIndexes(database, collection);
    return listed.map(({ spec, buildUUID, ...ready }) => (spec ? { ...spec, buildUUID } : ready));
  } catch (error) {
    if (error instanceof MongoServerError && error.code === NAMESPACE_NOT_FOUND) return [];
    throw error;
  }
}

/** Databases whose server lists only complete indexes, and has no `includeBuildUUIDs`. */
const listingCompleteOnly = new WeakSet<Db>();

async function listIndexes(database: Db, collection: string): Promise<readonly Document[]> {
  const includeBuildUUIDs = !listingCompleteOnly.has(database);
  const command = { listIndexes: collection, ...(includeBuildUUIDs && { includeBuildUUIDs }), cursor: {} };
  try {
    // All indexes of a collection fit into the first batch.
    const { cursor } = await database.command(command);
    return cursor.firstBatch;
  } catch (error) {
    const isUnknown = error instanceof MongoServerError && UNKNOWN_FIELD.includes(Number(error.code));
    if (!includeBuildUUIDs || !isUnknown) throw error;
    listingCompleteOnly.add(database);
    return listIndexes(database, collection);
  }
}
