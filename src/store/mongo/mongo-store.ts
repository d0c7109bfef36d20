import { type Db, type Document, MongoError } from 'mongodb';
import { STORE_CALL_MS } from '../../../common/deadlines.ts';
import { describeDuplicates, type ServerState, type SilentServer } from '../database-state.ts';
import { type ReportUnreadable, StoreUnavailable } from '../port/faults.ts';
import type { StoreListeners } from '../port/listeners.ts';
import type { RecordStore, Store } from '../store.ts';
import { mongoApiKeys } from './api-keys.ts';
import { mongoAudit } from './audit.ts';
import { createCollections, studioReads } from './collections.ts';
import { type Connection, connect, retryingCall, withSlowClient } from './connection.ts';
import { mongoConsumers } from './consumers.ts';
import { mongoDeliveries } from './deliveries.ts';
import { mongoDirectory } from './directory.ts';
import { distribution } from './distribution.ts';
import { duplicatesUnder, indexFaults, UNIQUELY_INDEXED } from './indexes.ts';
import { mongoLeadDeletion } from './lead-deletion.ts';
import { mongoLeadReads } from './lead-reads.ts';
import { mongoLeadWrites } from './leads.ts';
import { mongoLeadChanges } from './pending-changes.ts';
import { causalSessions, WrongServer } from './reconnecting-client.ts';
import { mongoRequestLog } from './request-log.ts';
import { mongoRestores } from './restores.ts';
import { mongoRetention } from './retention.ts';

/**
 * Opens the store in MongoDB or a compatible database. It relies only on single-document writes and unique indexes.
 * A standalone server, a replica set and a cluster sharded by `studioId` therefore keep the same promises.
 *
 * The database may be unavailable; until it is available, every call rejects with StoreUnavailable.
 *
 * @param url `mongodb://…` or `mongodb+srv://…`
 */
export async function openMongoStore(url: string, listeners: StoreListeners = {}): Promise<Store> {
  const connection = await connect(url, listeners);
  return { ...storeOn(connection), check: connection.check, close: connection.close };
}

export function storeOn(connection: Connection): RecordStore {
  const reads = studioReads(connection);
  // These write many records at a time.
  const repeated = { ...connection, call: retryingCall(connection) };
  return {
    ...mongoLeadWrites(connection),
    ...mongoLeadDeletion(repeated),
    ...mongoLeadReads(connection),
    ...mongoLeadChanges(repeated),
    ...mongoConsumers(repeated),
    ...mongoDeliveries(repeated, distribution(connection)),
    ...mongoRestores(connection),
    ...mongoRetention(connection),
    ...mongoApiKeys(connection, reads),
    ...mongoDirectory(connection, reads),
    ...mongoAudit(connection),
    ...mongoRequestLog(repeated),
  };
}

/** Reads the records of a database. Writes nothing, and creates no index. @throws StoreUnavailable */
export async function readMongo(
  url: string,
  report: ReportUnreadable,
  read: (store: RecordStore) => Promise<void>,
): Promise<void> {
  try {
    await withSlowClient(url, undefined, (database, client) =>
      read(
        storeOn({
          ...createCollections(database, causalSessions(client, database).run),
          indexes: { expectValid: () => Promise.reject(new StoreUnavailable('the database is only read')) },
          report,
          call: (body) => body(AbortSignal.timeout(STORE_CALL_MS)),
        }),
      ),
    );
  } catch (error) {
    if (!(error instanceof MongoError) && !(error instanceof WrongServer)) throw error;
    throw new StoreUnavailable('MongoDB does not answer', error);
  }
}

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
  const faults = (await Promise.all(UNIQUELY_INDEXED.map((collection) => indexFaults(database, collection)))).flat();
  return {
    kind: 'server',
    product: ferretdb ? 'FerretDB' : 'MongoDB',
    version: ferretdb?.version ?? version,
    topology: ferretdb ? 'in front of PostgreSQL' : readTopology(hello),
    indexFaults: await Promise.all(
      faults.map(async ({ index, fault }) => {
        const duplicates = describeDuplicates(await duplicatesUnder(database, index));
        return duplicates === undefined ? fault : `${fault}; ${duplicates}`;
      }),
    ),
  };
}

function readTopology({ msg, setName }: Document): ServerState['topology'] {
  if (msg === 'isdbgrid') return 'sharded cluster';
  return setName === undefined ? 'standalone server' : 'replica set';
}
