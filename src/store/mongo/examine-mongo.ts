import type { Db, Document } from 'mongodb';
import type { ServerState, SilentServer } from '../database-state.ts';
import { describeDuplicates } from '../index-faults.ts';
import { withSlowClient } from './connection.ts';
import { duplicatesUnder } from './duplicates.ts';
import { INDEXED, indexFaults } from './indexes.ts';
import { WrongServer } from './reconnecting-client.ts';

/** Examines a database without changing it. */
export async function examineMongo(url: string): Promise<ServerState | SilentServer> {
  try {
    return await withSlowClient(url, undefined, examine);
  } catch (reason) {
    return { kind: 'silent server', product: 'MongoDB', reason, isWrong: reason instanceof WrongServer };
  }
}

async function examine(database: Db): Promise<ServerState> {
  const hello = await database.command({ hello: 1 });
  const { version, ferretdb } = await database.command({ buildInfo: 1 });
  const faults = (await Promise.all(INDEXED.map((collection) => indexFaults(database, collection)))).flat();
  return {
    kind: 'server',
    product: ferretdb ? 'FerretDB' : 'MongoDB',
    version: ferretdb?.version ?? version,
    topology: ferretdb ? 'in front of PostgreSQL' : topologyOf(hello),
    time: hello.localTime,
    indexFaults: await Promise.all(
      faults.map(async ({ index, fault }) => {
        const duplicates = describeDuplicates(await duplicatesUnder(database, index));
        return duplicates === undefined ? fault : `${fault}; ${duplicates}`;
      }),
    ),
  };
}

function topologyOf({ msg, setName }: Document): ServerState['topology'] {
  if (msg === 'isdbgrid') return 'sharded cluster';
  return setName === undefined ? 'standalone server' : 'replica set';
}
