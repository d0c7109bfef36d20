import { BSON, type Document, MongoClient } from 'mongodb';

/** Documents in MongoDB's Extended JSON, by the names of their collections. */
export type Collections = Readonly<Record<string, Document>>;

/** Returns all documents of a database. */
export const readDocuments = (url: string): Promise<Collections> =>
  withDatabase(url, async (database) => {
    const all: Record<string, Document> = {};
    for (const { name } of await database.listCollections().toArray()) {
      const documents = await database.collection(name, { promoteValues: false }).find().sort({ _id: 1 }).toArray();
      all[name] = BSON.EJSON.serialize(documents, { relaxed: false });
    }
    return all;
  });

/** Writes documents into a new database. */
export const restoreDocuments = (url: string, collections: Collections): Promise<void> =>
  withDatabase(url, async (database) => {
    for (const [name, documents] of Object.entries(collections)) {
      await database.collection(name).insertMany(BSON.EJSON.deserialize(documents, { relaxed: false }) as Document[]);
    }
  });

export const dropDatabase = (url: string): Promise<void> =>
  withDatabase(url, async (database) => void (await database.dropDatabase()));

async function withDatabase<Result>(
  url: string,
  work: (database: ReturnType<MongoClient['db']>) => Promise<Result>,
): Promise<Result> {
  const client = new MongoClient(url);
  try {
    return await work(client.db());
  } finally {
    await client.close();
  }
}
