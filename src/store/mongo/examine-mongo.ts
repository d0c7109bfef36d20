import { saysOfDuplicates } from '../index-faults.ts';
import { patiently } from './connection.ts';
import { duplicatesUnder } from './duplicates.ts';
import { INDEXED, indexFaults } from './indexes.ts';

/** What a server says of itself. */
export interface MongoState {
  readonly version: string;
  readonly topology: 'standalone server' | 'replica set' | 'sharded cluster';
  /** By its clock. */
  readonly time: Date;
  /** What is wrong with each index that is not there, or not as it has to be, and which documents stand in its way. */
  readonly indexFaults: readonly string[];
}

/** Looks at a database without changing anything. @throws Error when it does not answer */
export async function examineMongo(url: string): Promise<MongoState> {
  return patiently(url, undefined, async (database) => {
    const hello = await database.command({ hello: 1 });
    const { version } = await database.command({ buildInfo: 1 });
    const isSharded = hello.msg === 'isdbgrid';
    const faults = (await Promise.all(INDEXED.map((collection) => indexFaults(database, collection)))).flat();
    return {
      version,
      topology: isSharded ? 'sharded cluster' : hello.setName === undefined ? 'standalone server' : 'replica set',
      time: hello.localTime,
      indexFaults: await Promise.all(
        faults.map(async ({ index, says }) => {
          const hindrance = saysOfDuplicates(await duplicatesUnder(database, index));
          return hindrance === undefined ? says : `${says}; ${hindrance}`;
        }),
      ),
    };
  });
}
