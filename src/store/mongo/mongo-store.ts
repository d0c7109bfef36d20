import type { ReportUnreadable, Store, StoreObserver } from '../store.ts';
import { mongoApiKeys } from './api-keys.ts';
import { mongoAudit } from './audit.ts';
import { type Connection, connect } from './connection.ts';
import { mongoDirectory } from './directory.ts';
import { mongoLeadChanges } from './lead-changes.ts';
import { mongoLeads } from './leads.ts';
import { studioReads } from './studio-reads.ts';

/**
 * Opens the store in MongoDB or a compatible database. It relies only on single-document writes and unique indexes, so
 * a standalone server, a replica set and a cluster sharded by `studioId` keep the same promises.
 *
 * The database may be unavailable; until it is available, every call rejects with StoreUnavailable.
 *
 * @param url `mongodb://…` or `mongodb+srv://…`
 * @param observer observes every command
 * @param report called for each unreadable record that a call skips
 */
export async function openMongoStore<Caller>(
  url: string,
  observer?: StoreObserver<Caller>,
  report?: ReportUnreadable,
): Promise<Store> {
  const connection = await connect(url, observer);
  return { ...storeOn(connection, report), check: connection.check, close: connection.close };
}

export function storeOn(connection: Connection, report: ReportUnreadable = () => {}): Omit<Store, 'check' | 'close'> {
  const reads = studioReads(connection);
  return {
    ...mongoLeads(connection, report),
    ...mongoLeadChanges(connection, report),
    ...mongoApiKeys(connection, reads, report),
    ...mongoDirectory(connection, reads, report),
    ...mongoAudit(connection, report),
  };
}
