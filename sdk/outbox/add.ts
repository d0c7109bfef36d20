import { randomUUID } from 'node:crypto';
import type { LeadCapture } from '../contract.ts';
import { isSameData, textOf } from './capture-text.ts';
import {
  type Connection,
  carryOut,
  isSqlite,
  type Result,
  type SqliteConnection,
  type Statement,
} from './connection.ts';
import { checkedKey } from './keys.ts';
import { OutboxError } from './outbox-error.ts';

/** Writes a lead into the table within the transaction that is open on the connection, if one is: on SQLite at once. */
export function add(
  connection: Connection,
  table: string,
  capture: LeadCapture,
  idempotencyKey: string = randomUUID(),
): string | Promise<string> {
  const key = checkedKey(idempotencyKey);
  const steps = adding(table, key, textOf(capture));
  return isSqlite(connection) ? nowOf(connection, steps) : laterOf(connection, steps);
}

/** What is to be done, whether the driver's answers come at once or later: yields statements, and is given their results. */
type Steps = Generator<Statement, string, Result>;

function* adding(table: string, key: string, text: string): Steps {
  const now = Date.now();
  const { changes } = yield {
    // A conflict that is an error would end a transaction of PostgreSQL.
    sql: `INSERT INTO ${table} (idempotency_key, capture, state, attempts, created_at, next_attempt_at)
          VALUES (?, ?, 'waiting', 0, ?, ?) ON CONFLICT (idempotency_key) DO NOTHING`,
    values: [key, text, now, now],
  };
  if (changes === 1) return key;
  const { rows } = yield { sql: `SELECT capture FROM ${table} WHERE idempotency_key = ?`, values: [key] };
  const there = rows[0]?.capture;
  if (typeof there === 'string' && !isSameData(there, text)) {
    throw new OutboxError(`The key ${key} stands for other data, which is not sent yet: new data needs a new key.`);
  }
  return key;
}

function nowOf(connection: SqliteConnection, steps: Steps): string {
  let step = steps.next();
  while (!step.done) step = steps.next(carryOut(connection, step.value));
  return step.value;
}

async function laterOf(connection: Connection, steps: Steps): Promise<string> {
  let step = steps.next();
  while (!step.done) step = steps.next(await carryOut(connection, step.value));
  return step.value;
}
