import { setTimeout as sleep } from 'node:timers/promises';
import { type Db, type Document, MongoServerError } from 'mongodb';
import { describeRefusal, MAX_GROUPS, MAX_IN_GROUP } from '../database-state.ts';
import { NotRepeatable } from './server-refusal.ts';

/** An index. Promises rely on the unique ones; the others only save time. */
export interface Index {
  readonly collection: string;
  readonly name: string;
  readonly key: Readonly<Record<string, 1 | -1>>;
  readonly unique: boolean;
}

/**
 * All indexes. None is partial or sparse: a lead always has both of its keys, an API key always has a slot. The unique
 * indexes of leads begin with `studioId`, so that the collection can be sharded by it.
 */
export const INDEXES: readonly Index[] = [
  { collection: 'leads', name: 'openContact', key: { studioId: 1, openContactKey: 1 }, unique: true },
  { collection: 'leads', name: 'idempotencyKey', key: { studioId: 1, 'idempotency.key': 1 }, unique: true },
  { collection: 'apiKeys', name: 'secret', key: { secretSha256: 1 }, unique: true },
  { collection: 'apiKeys', name: 'slot', key: { studioId: 1, slot: 1 }, unique: true },
  // The change feed covers all studios.
  { collection: 'leads', name: 'changedSince', key: { 'changes.since': 1 }, unique: false },
  // The leads of a stage that are not erased, in the order of their changes. No part is `_id`, because some engines
  // would use the index for lists of all leads.
  {
    collection: 'leads',
    name: 'stage',
    key: { studioId: 1, stage: 1, erasedAt: 1, updatedAt: 1, '_id.id': 1 },
    unique: false,
  },
  { collection: 'deliveries', name: 'consumer', key: { consumer: 1, due: 1 }, unique: false },
];

/** Collections with unique indexes. */
export const UNIQUELY_INDEXED = ['leads', 'apiKeys'] as const;
export const INDEXED = [...UNIQUELY_INDEXED, 'deliveries'] as const;
export type Indexed = (typeof INDEXED)[number];

export interface IndexFault {
  readonly index: Index;
  /** For example "leads.slot is missing". */
  readonly fault: string;
}

const NAMESPACE_NOT_FOUND = 26;

/** The error codes for an unknown field of a command: MongoDB's, and that of compatible servers. */
const UNKNOWN_FIELD: readonly unknown[] = [40415, 9];

/** Creates an index unless it exists. Safe to repeat, even concurrently. */
export async function createIndex(database: Db, { collection, name, key, unique }: Index): Promise<void> {
  await database.collection(collection).createIndex(key, { name, unique });
}

/** Returns the missing or invalid indexes of a collection, compared by key and options, not by name. */
export async function indexFaults(database: Db, collection: string): Promise<readonly IndexFault[]> {
  const found = await readIndexes(database, collection);
  return INDEXES.filter((index) => index.collection === collection).flatMap((index) => {
    const withSameKey = found.filter(({ key }) => hasKey(key, index));
    if (withSameKey.some((each) => weaknesses(each, index).length === 0)) return [];
    return [{ index, fault: `${collection}.${index.name} ${describe(index, withSameKey, found)}` }];
  });
}

function describe(index: Index, withSameKey: readonly Document[], all: readonly Document[]): string {
  if (withSameKey.length > 0) {
    const described = withSameKey.map((found) => `"${found.name}" ${weaknesses(found, index).join(', ')}`);
    return `is invalid: the index ${described.join('; the index ')}`;
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

/** Databases whose servers list only complete indexes, and do not know `includeBuildUUIDs`. */
const listingCompleteOnly = new WeakSet<Db>();

/** Returns all indexes of a collection. An index with a `buildUUID` is still being built, and enforces nothing. */
async function readIndexes(database: Db, collection: string): Promise<readonly Document[]> {
  const includeBuildUUIDs = !listingCompleteOnly.has(database);
  const command = { listIndexes: collection, ...(includeBuildUUIDs && { includeBuildUUIDs }), cursor: {} };
  try {
    // All indexes of a collection fit into the first batch.
    const { firstBatch }: { readonly firstBatch: readonly Document[] } = (await database.command(command)).cursor;
    return firstBatch.map(({ spec, buildUUID, ...ready }) => (spec ? { ...spec, buildUUID } : ready));
  } catch (error) {
    const code = error instanceof MongoServerError ? error.code : undefined;
    if (code === NAMESPACE_NOT_FOUND) return [];
    if (!includeBuildUUIDs || !UNKNOWN_FIELD.includes(code)) throw error;
    listingCompleteOnly.add(database);
    return readIndexes(database, collection);
  }
}

const CHECK_INTERVAL_MS = 1000;

/** The maximum delay between attempts to build an index, which may read a whole collection; milliseconds. */
const MAX_REBUILD_DELAY_MS = 60_000;

interface IndexAccess {
  /** Checks a collection's indexes; rejects when the database does not respond. */
  check(collection: Indexed): Promise<readonly IndexFault[]>;
  /** Builds an index; returns why that failed, or undefined. */
  build(index: Index): Promise<string | undefined>;
}

export interface Indexes {
  /**
   * Must be called before a write that relies on a collection's unique indexes. Uses the last check, and waits for one
   * only if there was none since the connection was made.
   *
   * @throws NotRepeatable when an index was missing, or another one was in its place
   */
  expectValid(...collections: readonly Indexed[]): Promise<void>;
}

/** Checks the indexes once a second, and rebuilds missing ones. */
export function indexKeeper(access: IndexAccess) {
  /** The last check of each collection; none after a lost connection or a failed check. */
  const checks = new Map<Indexed, Promise<readonly IndexFault[]>>();
  const buildErrors = new Map<Index, string>();
  let isStarted = false;
  let keeping: Promise<void> | undefined;
  let rebuilding: Promise<void> | undefined;
  let rebuildDelayMs = CHECK_INTERVAL_MS;
  let nextRebuildAt = 0;

  async function keep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(CHECK_INTERVAL_MS, undefined, { signal, ref: false }).catch(() => {});
      if (!signal.aborted) await checkAll();
    }
  }

  /** Checks all indexes, and starts to rebuild missing ones, unless that failed recently. */
  async function checkAll(): Promise<void> {
    // If a check fails, the database does not respond, or refuses it. Waiting writes get the check's error.
    const checked = await Promise.allSettled(INDEXED.map(check));
    const faults = checked.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
    if (faults.length > 0) {
      if (performance.now() >= nextRebuildAt) rebuilding ??= rebuild(faults);
    } else if (checked.every(({ status }) => status === 'fulfilled')) rebuildDelayMs = CHECK_INTERVAL_MS;
  }

  async function check(collection: Indexed): Promise<readonly IndexFault[]> {
    const checking = access.check(collection);
    if (!checks.has(collection)) checks.set(collection, checking);
    try {
      const faults = await checking;
      checks.set(collection, checking);
      return faults;
    } catch (error) {
      checks.delete(collection);
      throw error;
    }
  }

  /** Rebuilds indexes, which may take long; checks continue meanwhile. */
  async function rebuild(faults: readonly IndexFault[]): Promise<void> {
    try {
      for (const { index } of faults) {
        const error = await access.build(index);
        if (error === undefined) buildErrors.delete(index);
        else buildErrors.set(index, error);
      }
    } catch {
      // The database does not respond.
    }
    nextRebuildAt = performance.now() + rebuildDelayMs;
    rebuildDelayMs = Math.min(rebuildDelayMs * 2, MAX_REBUILD_DELAY_MS);
    await checkAll();
    rebuilding = undefined;
  }

  return {
    async expectValid(...collections: readonly Indexed[]): Promise<void> {
      if (!isStarted) throw new NotRepeatable(describeRefusal(['the indexes have not been checked yet']));
      const found = await Promise.all(collections.map((collection) => checks.get(collection) ?? check(collection)));
      // The other indexes only save time.
      const faults = found.flat().filter(({ index }) => index.unique);
      if (faults.length > 0)
        throw new NotRepeatable(
          describeRefusal(faults.map((each) => describeFault(each, buildErrors.get(each.index)))),
        );
    },

    /** Must be called when a server is lost, or changes its role, because the next server may lack an index. */
    forget: () => checks.clear(),

    /** Builds the indexes, and then checks them until the signal aborts. Never rejects. */
    async start(signal: AbortSignal): Promise<void> {
      isStarted = true;
      await checkAll();
      keeping = keep(signal);
      await rebuilding;
    },

    /** Resolves once all checks and builds have ended, after the signal aborted. */
    async ended(): Promise<void> {
      await keeping;
      await rebuilding;
    },
  };
}

const describeFault = ({ fault }: IndexFault, buildError: string | undefined): string =>
  buildError === undefined ? fault : `${fault}, and cannot be built: ${buildError}`;

const SEARCH_MS = 600_000;

/** Finds groups of documents that violate a unique index. Returns only their ids, oldest first. */
export async function duplicatesUnder(database: Db, { collection, key }: Index): Promise<readonly string[][]> {
  const documents = database.collection(collection);
  const fields = Object.keys(key);
  // An index has an entry for each value of an array; a missing field counts as null.
  const unwound = fields.map((field) => ({ $unwind: { path: `$${field}`, preserveNullAndEmptyArrays: true } }));
  const values = Object.fromEntries(fields.map((field, index) => [`field${index}`, `$${field}`]));
  const groups = await documents
    .aggregate(
      [
        ...unwound,
        { $group: { _id: values, count: { $sum: 1 } } },
        { $match: { count: { $gt: 1 } } },
        { $limit: MAX_GROUPS },
      ],
      { allowDiskUse: true, maxTimeMS: SEARCH_MS },
    )
    .toArray();
  return Promise.all(
    groups.map(async ({ _id }) => {
      const same = Object.fromEntries(fields.map((field, index) => [field, _id[`field${index}`] ?? null]));
      const found = await documents
        .find(same, { projection: { _id: 1 } })
        .sort({ _id: 1 })
        .limit(MAX_IN_GROUP)
        .toArray();
      return found.map(documentName);
    }),
  );
}

/** Returns the studio and id of a lead; the id of a key. */
const documentName = ({ _id }: Document): string =>
  _id.studioId === undefined ? String(_id) : `${_id.studioId}/${_id.id}`;
