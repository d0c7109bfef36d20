import { databaseOf, patientClient } from './connection.ts';
import { missingIndexes } from './indexes.ts';

/** What a server says of itself. */
export interface MongoState {
  readonly version: string;
  readonly topology: 'standalone server' | 'replica set' | 'sharded cluster';
  /** By its clock. */
  readonly time: Date;
  /** Names of the indexes that are not there, or not as they have to be. */
  readonly missingIndexes: readonly string[];
}

/** Looks at a database without changing anything. @throws Error when it does not answer */
export async function examineMongo(url: string): Promise<MongoState> {
  const client = patientClient(url);
  try {
    const database = databaseOf(client, url);
    const hello = await database.command({ hello: 1 });
    const { version } = await database.command({ buildInfo: 1 });
    const isSharded = hello.msg === 'isdbgrid';
    return {
      version,
      topology: isSharded ? 'sharded cluster' : hello.setName === undefined ? 'standalone server' : 'replica set',
      time: hello.localTime,
      missingIndexes: await missingIndexes(database),
    };
  } finally {
    await client.close();
  }
}
