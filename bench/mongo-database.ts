import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { atTheEnd } from './processes.ts';

/** The address of another database on the server of an address. */
export function withDatabase(mongoUrl: string, name: string): string {
  return mongoUrl.replace(/^([^/]+:\/\/[^/?]+)(?:\/[^?]*)?/, `$1/${name}`);
}

/** The address of a database that is gone when the benchmark is over. */
export function ownDatabase(mongoUrl: string): string {
  const url = withDatabase(mongoUrl, `bench-${randomUUID()}`);
  atTheEnd(async () => {
    const client = new MongoClient(url, { serverSelectionTimeoutMS: 2000 });
    try {
      await client.db().dropDatabase();
    } finally {
      await client.close();
    }
  });
  return url;
}

/** What the server is, and its version. */
export async function serverName(mongoUrl: string): Promise<string> {
  const client = new MongoClient(mongoUrl);
  try {
    const { version, ferretdb } = await client.db('admin').command({ buildInfo: 1 });
    return ferretdb ? `FerretDB ${ferretdb.version}` : `MongoDB ${version}`;
  } finally {
    await client.close();
  }
}
