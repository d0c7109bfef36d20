import type { Db, IndexSpecification } from 'mongodb';

interface Index {
  readonly collection: string;
  readonly name: string;
  readonly key: IndexSpecification & Record<string, 1 | -1>;
  readonly unique: boolean;
}

/**
 * Every index. None is partial or sparse: a lead always has both of its claims, a key always has a slot. Those of leads
 * begin with `studioId`, so that the collection can be sharded by it.
 */
export const INDEXES: readonly Index[] = [
  { collection: 'leads', name: 'openContact', key: { studioId: 1, openContactKey: 1 }, unique: true },
  { collection: 'leads', name: 'idempotencyKey', key: { studioId: 1, 'idempotency.key': 1 }, unique: true },
  { collection: 'apiKeys', name: 'secret', key: { secretSha256: 1 }, unique: true },
  { collection: 'apiKeys', name: 'slot', key: { studioId: 1, slot: 1 }, unique: true },
  // Each core looks every few seconds for studios whose claims are to be renewed.
  { collection: 'studios', name: 'claimVersion', key: { claimVersion: 1 }, unique: false },
];

/** Makes the indexes that are missing. May be done by several processes at once, and again. */
export async function ensureIndexes(database: Db): Promise<void> {
  for (const { collection, name, key, unique } of INDEXES) {
    await database.collection(collection).createIndex(key, { name, unique });
  }
}

/** The names of the indexes that are not there, or not as they have to be. */
export async function missingIndexes(database: Db): Promise<string[]> {
  const missing: string[] = [];
  for (const collection of new Set(INDEXES.map((index) => index.collection))) {
    const there = await database.collection(collection).listIndexes().toArray();
    for (const index of INDEXES.filter((index) => index.collection === collection)) {
      const found = there.find(({ name }) => name === index.name);
      const sameKey = JSON.stringify(found?.key) === JSON.stringify(index.key);
      if (!sameKey || (index.unique && found?.unique !== true)) missing.push(`${collection}.${index.name}`);
    }
  }
  return missing;
}
