import type { MongoClient } from 'mongodb';

/** The address of another database on the server of an address. */
export function withDatabase(mongoUrl: string, name: string): string {
  return mongoUrl.replace(/^([^/]+:\/\/[^/?]+)(?:\/[^?]*)?/, `$1/${name}`);
}

/** What the server is, and its version. */
export async function serverName(client: MongoClient): Promise<string> {
  const { version, ferretdb } = await client.db('admin').command({ buildInfo: 1 });
  return ferretdb ? `FerretDB ${ferretdb.version}` : `MongoDB ${version}`;
}
