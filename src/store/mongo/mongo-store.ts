import type { Store } from '../store.ts';
import { mongoApiKeys } from './api-keys.ts';
import { connect } from './connection.ts';
import { mongoDirectory } from './directory.ts';
import { mongoLeads } from './leads.ts';

/**
 * Opens the store in MongoDB, or in what speaks its protocol. It uses single-document writes and unique indexes only, so
 * a standalone server, a replica set and a cluster sharded by `studioId` keep the same promises.
 *
 * The database need not be there yet: until it is, every call rejects with StoreUnavailable.
 *
 * @param url `mongodb://…` or `mongodb+srv://…`
 */
export async function openMongoStore(url: string): Promise<Store> {
  const connection = await connect(url);
  return {
    ...mongoLeads(connection),
    ...mongoApiKeys(connection),
    ...mongoDirectory(connection),
    check: connection.check,
    close: connection.close,
  };
}
