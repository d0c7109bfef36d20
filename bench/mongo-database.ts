import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { atTheEnd } from './processes.ts';

/** Replaces the database in an address. */
function withDatabase(mongoUrl: string, name: string): string {
  return mongoUrl.replace(/^([^/]+:\/\/[^/?]+)(?:\/[^?]*)?/, `$1/${name}`);
}

/** Returns the address of a new database that is dropped when the benchmark ends. */
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

/** The server's name and version. */
export async function serverName(mongoUrl: string): Promise<string> {
  const client = new MongoClient(mongoUrl);
  try {
    const { version, ferretdb } = await client.db('admin').command({ buildInfo: 1 });
    return ferretdb ? `FerretDB ${ferretdb.version}` : `MongoDB ${version}`;
  } finally {
    await client.close();
  }
}
