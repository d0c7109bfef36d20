import { randomUUID } from 'node:crypto';
import type { LeadCapture } from '../api-types.ts';
import { captureIn, isSameData, toText } from './capture-text.ts';
import {
  type Connection,
  captureColumn,
  carryOut,
  isSqlite,
  type Result,
  type SqliteConnection,
  type Statement,
} from './connection.ts';
import { checkedKey } from './keys.ts';
import { OutboxError } from './outbox-error.ts';

/** Inserts a lead within the connection's open transaction, if any. Synchronous on SQLite. */
export function add(
  connection: Connection,
  table: string,
  capture: LeadCapture,
  idempotencyKey: string = randomUUID(),
): string | Promise<string> {
  const key = checkedKey(idempotencyKey);
  const steps = addSteps(table, captureColumn(connection), key, toText(capture));
  return isSqlite(connection) ? runSync(connection, steps) : runAsync(connection, steps);
}

/** The steps for synchronous and asynchronous drivers alike: yields statements and receives their results. */
type Steps = Generator<Statement, string, Result>;

function* addSteps(table: string, column: string, key: string, text: string): Steps {
  const now = Date.now();
  yield {
    // A unique violation would abort the website's transaction on PostgreSQL.
    sql: `INSERT INTO ${table} (idempotency_key, capture, state, attempts, created_at, next_attempt_at)
          VALUES (?, ?, 'waiting', 0, ?, ?) ON CONFLICT (idempotency_key) DO NOTHING`,
    values: [key, text, now, now],
  };
  const { rows } = yield { sql: `SELECT ${column} FROM ${table} WHERE idempotency_key = ?`, values: [key] };
  const [row] = rows;
  if (row === undefined || row.capture === undefined) {
    throw new OutboxError(`The database has not stored the lead with the key ${key}: check its driver.`);
  }
  if (row.capture !== null && !isSameData(captureIn(row.capture), text)) {
    throw new OutboxError(`The key ${key} is stored with other data, which is not sent yet: new data needs a new key.`);
  }
  return key;
}

function runSync(connection: SqliteConnection, steps: Steps): string {
  let step = steps.next();
  while (!step.done) step = steps.next(carryOut(connection, step.value));
  return step.value;
}

async function runAsync(connection: Connection, steps: Steps): Promise<string> {
  let step = steps.next();
  while (!step.done) step = steps.next(await carryOut(connection, step.value));
  return step.value;
}
