import type { LeadCapture } from '../api-types.ts';
import type { LeadIntakeClient } from '../client.ts';
import { add } from './add.ts';
import { discard, type LeadInNeed, needsAttention, retry } from './attention.ts';
import { type Connection, checkedConnection, type PostgresConnection, type SqliteConnection } from './connection.ts';
import { type Delivery, type DeliveryOptions, deliver } from './delivery.ts';
import { lastReconciliation, type ReconcileOptions, reconcile } from './reconcile.ts';
import type { Reconciliation } from './reconciliation.ts';
import { type SendAgainOptions, sendAgain } from './send-again.ts';
import { checkedTable, DEFAULT_TABLE, setUp, tableStatements, warnOfDefaultTable } from './table.ts';
import { type WaitingLeads, waitingLeads } from './waiting.ts';
import { run, type WorkerOptions } from './worker.ts';

/** Options of {@link createOutbox}. */
export interface OutboxOptions {
  /**
   * The table's name: letters, digits and `_`. Name it after the website, because a website sends all leads in its table. The default,
   * `lead_intake_outbox`, is deprecated.
   */
  readonly table?: string;
}

/**
 * Stores leads in a website's own database first, and sends them later. Database failures throw the driver's errors. An
 * operation that the table's state does not permit, or for which it is missing, throws an OutboxError, invalid input a TypeError.
 */
export interface Outbox {
  /** Creates the table and its index if they do not exist. Safe to call concurrently from several processes. Warns if no table was named. */
  setUp(connection: Connection): Promise<void>;

  /** Returns the same as SQL, for the website's own migrations. */
  setUpSql(): string;

  /**
   * Inserts a lead within the connection's open transaction, which commits it or rolls it back.
   * Synchronous on SQLite.
   *
   * Leaves out optional texts that are empty or blank, and makes each line break of the note one character.
   *
   * Does nothing when the key is already stored with the same data, or with data that has been erased since.
   *
   * @param options.idempotencyKey a UUID that identifies this lead's data permanently, such as keyFor returns. Default: a new one
   * @returns the key
   * @throws TypeError when the data cannot be stored or the service does not accept the key; nothing is written then
   * @throws OutboxError when the key is stored with different data, or the driver has not stored the lead
   */
  add(connection: SqliteConnection, capture: LeadCapture, options?: { readonly idempotencyKey?: string }): string;
  add(
    connection: PostgresConnection,
    capture: LeadCapture,
    options?: { readonly idempotencyKey?: string },
  ): Promise<string>;

  /**
   * Makes one pass: sends the due leads, fewest attempts first, then due for longest, and erases the data of delivered ones. Any
   * number of workers may run concurrently.
   *
   * @param connection a connection without an open transaction
   * @throws TypeError when `limit` or `keepSettledDays` is out of range
   * @throws OutboxError when a transaction is open on the connection
   * @throws AggregateError after the pass, with the errors thrown, for instance by `onSettled`; their leads keep waiting
   */
  deliver(connection: Connection, client: LeadIntakeClient, options?: DeliveryOptions): Promise<Delivery>;

  /**
   * Delivers repeatedly until its signal is aborted. Continues after failures of the database or the service.
   *
   * @throws TypeError when `pollMs`, `limit` or `keepSettledDays` is out of range
   */
  run(connection: Connection, client: LeadIntakeClient, options: WorkerOptions): Promise<void>;

  /**
   * Returns the leads that need a person's attention, oldest first, and their total number: leads that were refused, that
   * wait because of the API key, the studio or the address (401 to 405), that have waited for more than a day, that were stored by a
   * clock more than a day ahead, or whose message perhaps nobody got.
   *
   * @param options.limit the maximum number of entries. Default: 100
   */
  needsAttention(
    connection: Connection,
    options?: { readonly limit?: number },
  ): Promise<{ readonly count: number; readonly entries: readonly LeadInNeed[] }>;

  /** Summarizes all waiting leads: how many, since when, and why; null: there are none. */
  waiting(connection: Connection): Promise<WaitingLeads | null>;

  /**
   * Makes a lead due immediately, with its key. For a `delivered` lead, the service would only return the earlier lead: add
   * it with another key instead.
   *
   * @param capture replaces its data. After an idempotency conflict the key cannot be used again: discard it and add the lead again
   * @throws OutboxError when there is no such lead, or it is settled
   */
  retry(connection: Connection, idempotencyKey: string, capture?: LeadCapture): Promise<void>;

  /**
   * Discards a lead and erases its data.
   *
   * @throws OutboxError when there is no such lead, or it was delivered
   */
  discard(connection: Connection, idempotencyKey: string): Promise<void>;

  /**
   * Compares the leads that were sent with the service. It only reads. The next call within a day continues one that was
   * stopped or killed. Leaves half of the quota to the website.
   *
   * @param client a client whose key has the scope `leads.read`
   * @param connection a connection without an open transaction
   * @throws OutboxError when the key may not read leads, another comparison has begun, or a transaction is open
   */
  reconcile(connection: Connection, client: LeadIntakeClient, options?: ReconcileOptions): Promise<Reconciliation>;

  /** Returns the latest comparison, finished or not; null: there was none. */
  lastReconciliation(connection: Connection): Promise<Reconciliation | null>;

  /**
   * Schedules a sent lead that the service no longer has to be sent again, with its key and data. Looks it up first. The
   * service refuses an erased lead. It creates a lost one again, unless its contact has an open lead.
   *
   * @throws OutboxError when the service has the lead, it was not sent, has no data, or `mayCreate` is not true
   * @throws LeadIntakeError when the service could not be asked
   */
  sendAgain(
    connection: Connection,
    client: LeadIntakeClient,
    idempotencyKey: string,
    options: SendAgainOptions,
  ): Promise<void>;
}

/**
 * Creates an outbox. It holds no connection and no state other than its table.
 *
 * @throws TypeError when the table's name is invalid
 */
export function createOutbox({ table: name }: OutboxOptions = {}): Outbox {
  const table = checkedTable(name ?? DEFAULT_TABLE);
  return {
    async setUp(connection) {
      // Only this warns: cron would mail each warning of a worker or a report.
      if (name === undefined) warnOfDefaultTable();
      await setUp(checkedConnection(connection), table);
    },
    setUpSql: () => `${tableStatements(table).join(';\n')};\n`,
    add: ((connection: Connection, capture: LeadCapture, { idempotencyKey }: { idempotencyKey?: string } = {}) =>
      add(checkedConnection(connection), table, capture, idempotencyKey)) as Outbox['add'],
    deliver: async (connection, client, options) =>
      deliver(checkedConnection(connection), table, checkedClient(client), options),
    run: async (connection, client, options) =>
      run(checkedConnection(connection), table, checkedClient(client), options),
    needsAttention: async (connection, { limit = 100 } = {}) =>
      needsAttention(checkedConnection(connection), table, limit),
    waiting: async (connection) => waitingLeads(checkedConnection(connection), table),
    retry: async (connection, key, capture) => retry(checkedConnection(connection), table, key, capture),
    discard: async (connection, key) => discard(checkedConnection(connection), table, key),
    reconcile: async (connection, client, options) =>
      reconcile(checkedConnection(connection), table, checkedClient(client), options),
    lastReconciliation: async (connection) => lastReconciliation(checkedConnection(connection), table),
    sendAgain: async (connection, client, key, options) =>
      sendAgain(checkedConnection(connection), table, checkedClient(client), key, options),
  };
}

/** @throws TypeError when it is not a client, but a connection, for instance */
function checkedClient(client: LeadIntakeClient): LeadIntakeClient {
  if (typeof Object(client).createLead === 'function') return client;
  throw new TypeError('The second argument must be a client that createLeadIntakeClient has returned.');
}
