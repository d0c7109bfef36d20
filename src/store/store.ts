import type { ApiKeyStore } from './port/api-keys.ts';
import type { AuditStore } from './port/audit.ts';
import type { ConsumerStore } from './port/consumers.ts';
import type { DeliveryStore } from './port/deliveries.ts';
import type { DirectoryStore } from './port/directory.ts';
import type { LeadChangeStore } from './port/lead-changes.ts';
import type { LeadCreationStore } from './port/lead-creation.ts';
import type { LeadErasureStore } from './port/lead-erasure.ts';
import type { LeadReadStore } from './port/lead-reads.ts';
import type { RequestLogStore } from './port/request-log.ts';
import type { ResendStore } from './port/resending.ts';
import type { RestoreStore } from './port/restores.ts';
import type { RetentionStore } from './port/retention.ts';

/**
 * The store port. Each method is atomic: it takes effect entirely or not at all. This holds when the process dies
 * half-way, when several processes call it concurrently, and when the response is lost. Resolved writes are durable.
 *
 * A method that cannot keep its promise now, or cannot know whether it did, rejects with StoreUnavailable. A write whose
 * response was lost must not be retried before it is known to have had no effect: a retry must not undo what others have
 * written since. `test/contract/store-contract.ts` tests every "must" below on every adapter.
 *
 * A change with a `requestId` takes effect once. The last MAX_APPLIED_REQUESTS identities of a record are remembered (in
 * SQLite, the last MAX_STORED_REQUESTS of all). A call with one of them must write nothing, in any process, and return the
 * current state. A call that finds nothing to change must also store the identity; a rejected change must not.
 *
 * The database may hold records that this release did not write, so every record is checked when it is read. An
 * unreadable record must only affect calls for that record, and the keys and slots that it holds must stay taken. A call that skips
 * the record must report it.
 *
 * Throughout: lists are limited to `limit` records. `after` restricts a list to ids above it, and `before` to ids below
 * it; null: from the start of the list. `next` is the id to continue after; null: there are no more.
 */
export interface RecordStore
  extends LeadCreationStore,
    LeadReadStore,
    LeadChangeStore,
    LeadErasureStore,
    ResendStore,
    ConsumerStore,
    DeliveryStore,
    RestoreStore,
    RetentionStore,
    ApiKeyStore,
    DirectoryStore,
    AuditStore,
    RequestLogStore {}

export interface Store extends RecordStore {
  /**
   * Must resolve only if the store can read and write, and every unique index was valid a second ago. Otherwise rejects
   * with StoreUnavailable, whose message and causes give the reason, and contain no data of leads and keys except ids.
   */
  check(): Promise<void>;
  /** Closes the store after the writes in flight; may be called twice. */
  close(): Promise<void>;
}
