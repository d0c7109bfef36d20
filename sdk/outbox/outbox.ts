import type { LeadIntakeClient } from '../client.ts';
import type { LeadCapture } from '../contract.ts';
import { add } from './add.ts';
import { discard, type LeadInNeed, needsAttention, retry } from './attention.ts';
import type { Connection, PostgresConnection, SqliteConnection } from './connection.ts';
import { type Delivery, type DeliveryOptions, deliver } from './delivery.ts';
import { checkedTable, DEFAULT_TABLE, setUp, tableStatements } from './table.ts';
import { run, type WorkerOptions } from './worker.ts';

/** What an outbox is made of. */
export interface OutboxOptions {
  /** The name of its table: letters, digits and `_`. Unless told, `lead_intake_outbox`. */
  readonly table?: string;
}

/**
 * Stores leads in a website's own database first, and sends them later. A database that fails throws what its driver
 * throws; what cannot be done as the table stands, an OutboxError; what cannot be stored at all, a TypeError.
 */
export interface Outbox {
  /** Makes the table and its index where they are missing. Any number of processes may do so at once. */
  setUp(connection: Connection): Promise<void>;

  /** The same as SQL, for migrations of the website's own. */
  setUpSql(): string;

  /**
   * Writes a lead into the table with one statement, within the transaction that is open on the connection: it is there
   * when that is committed, and not when it is rolled back. On SQLite it is done when this returns.
   *
   * With a key that is there already and the same data, or data that is erased since, nothing happens.
   *
   * @param options.idempotencyKey a UUID that stands for this lead's data for ever, such as keyFor makes; unless given, a new one
   * @returns the key
   * @throws TypeError when the data cannot be stored, or the key is no UUID that the service takes; nothing is written then
   * @throws OutboxError when other data waits under the key
   */
  add(connection: SqliteConnection, capture: LeadCapture, options?: { readonly idempotencyKey?: string }): string;
  add(
    connection: PostgresConnection,
    capture: LeadCapture,
    options?: { readonly idempotencyKey?: string },
  ): Promise<string>;

  /**
   * Sends what is due, fewest attempts first, then oldest, and erases what has arrived: one pass. Any number of workers may do so at once.
   *
   * @param connection one on which no transaction is open
   * @throws AggregateError after the pass, with what was thrown, by `onSettled` for instance: these leads stay, and wait
   */
  deliver(connection: Connection, client: LeadIntakeClient, options?: DeliveryOptions): Promise<Delivery>;

  /** Delivers again and again until its signal is aborted. It goes on when database or service are away for a while. */
  run(connection: Connection, client: LeadIntakeClient, options: WorkerOptions): Promise<void>;

  /**
   * The leads that need a person, oldest first, and how many there are in all: those that were refused, those that wait
   * because of the API key or the studio (401, 402, 403), those that have waited for more than a day, and those that a clock
   * has stored which was more than a day ahead.
   *
   * @param options.limit how many are listed at most; unless told, 100
   */
  needsAttention(
    connection: Connection,
    options?: { readonly limit?: number },
  ): Promise<{ readonly count: number; readonly entries: readonly LeadInNeed[] }>;

  /**
   * Has a lead sent again as soon as may be, under its key.
   *
   * @param capture in place of its data. After an idempotency conflict the key is used up: discard it, and add the lead anew
   * @throws OutboxError when there is none, or it is settled
   */
  retry(connection: Connection, idempotencyKey: string, capture?: LeadCapture): Promise<void>;

  /**
   * Gives a lead up, and erases its data.
   *
   * @throws OutboxError when there is none, or it has arrived
   */
  discard(connection: Connection, idempotencyKey: string): Promise<void>;
}

/**
 * Makes an outbox. It keeps nothing open and has no state but its table.
 *
 * @throws TypeError when the table's name cannot be one
 */
export function createOutbox({ table: name = DEFAULT_TABLE }: OutboxOptions = {}): Outbox {
  const table = checkedTable(name);
  return {
    setUp: (connection) => setUp(connection, table),
    setUpSql: () => `${tableStatements(table).join(';\n')};\n`,
    add: ((connection: Connection, capture: LeadCapture, { idempotencyKey }: { idempotencyKey?: string } = {}) =>
      add(connection, table, capture, idempotencyKey)) as Outbox['add'],
    deliver: (connection, client, options) => deliver(connection, table, client, options),
    run: (connection, client, options) => run(connection, table, client, options),
    needsAttention: (connection, { limit = 100 } = {}) => needsAttention(connection, table, limit),
    retry: (connection, key, capture) => retry(connection, table, key, capture),
    discard: (connection, key) => discard(connection, table, key),
  };
}
