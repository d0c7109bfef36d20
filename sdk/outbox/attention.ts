import type { LeadCapture } from '../api-types.ts';
import { SQL_RETRIED_ATTEMPTS, SQL_WITH_DATA } from '../outcomes.ts';
import { captureIn, toText } from './capture-text.ts';
import { type Connection, captureColumn, carryOut, keyIn, type Statement, toDate, type Value } from './connection.ts';
import { OutboxError } from './outbox-error.ts';
import { OF_CONFIGURATION } from './reasons.ts';

const STATES = ['refused', 'waiting', 'already_open', 'delivered'] as const;

/** A lead that needs a person's attention. */
export interface LeadInNeed {
  readonly idempotencyKey: string;
  /**
   * `refused`: it is not sent again; a row in an unknown state counts as refused. `waiting`: it fails again until someone fixes the cause.
   * `already_open`, `delivered`: it is not sent again, but perhaps nobody got the visitor's message; discard it once somebody has.
   */
  readonly state: (typeof STATES)[number];
  readonly createdAt: Date;
  /** The number of attempts so far. Attempts that wrote nothing and would have failed for any lead do not count. */
  readonly attempts: number;
  /** Why it needs attention; null when not known yet. */
  readonly reason: string | null;
  /** The lead's data; null when the stored text cannot be read. */
  readonly capture: LeadCapture | null;
}

/** A lead needs attention after it has waited for this time, or when a clock that was further ahead stored it; milliseconds. */
const WAITS_TOO_LONG_MS = 24 * 60 * 60 * 1000;

const IN_NEED = `${SQL_WITH_DATA} AND (state <> 'waiting' OR created_at < ? OR created_at > ? OR ${OF_CONFIGURATION})`;

/** Returns the leads that need attention, oldest first, and their total number. */
export async function needsAttention(
  connection: Connection,
  table: string,
  limit: number,
): Promise<{ readonly count: number; readonly entries: readonly LeadInNeed[] }> {
  const now = Date.now();
  const times = [now - WAITS_TOO_LONG_MS, now + WAITS_TOO_LONG_MS];
  const counted = await carryOut(connection, {
    sql: `SELECT COUNT(*) AS total FROM ${table} WHERE ${IN_NEED}`,
    values: times,
  });
  const { rows } = await carryOut(connection, {
    // As text: the stored integer may exceed what drivers can read.
    sql: `SELECT idempotency_key, state, CAST(created_at AS TEXT) AS created_at, attempts, reason, ${captureColumn(connection)} FROM ${table}
          WHERE ${IN_NEED} ORDER BY ${table}.created_at LIMIT ?`,
    values: [...times, limit],
  });
  const entries = rows.map((row) => ({
    idempotencyKey: keyIn(row),
    state: STATES.find((state) => state === row.state) ?? 'refused',
    createdAt: toDate(row.created_at),
    attempts: Number(row.attempts) || 0,
    reason: (row.reason as string | null) || null,
    capture: captureIn(row.capture),
  }));
  return { count: Number(counted.rows[0]?.total), entries };
}

/** Schedules a lead to be sent again, with its stored data or with new data. */
export async function retry(connection: Connection, table: string, key: string, capture?: LeadCapture): Promise<void> {
  const data: readonly Value[] = capture === undefined ? [] : [toText(capture)];
  await changeOne(connection, table, key, {
    sql: `UPDATE ${table} SET attempts = ${SQL_RETRIED_ATTEMPTS}, state = 'waiting', next_attempt_at = ?, reason = NULL
          ${data.length > 0 ? ', capture = ?' : ''} WHERE idempotency_key IN (?, ?) AND ${SQL_WITH_DATA}`,
    values: [Date.now(), ...data, ...possibleKeys(key)],
  });
}

/** Discards a lead and erases its data. */
export async function discard(connection: Connection, table: string, key: string): Promise<void> {
  await changeOne(connection, table, key, {
    sql: `UPDATE ${table} SET state = 'discarded', settled_at = COALESCE(settled_at, ?), capture = NULL, reason = NULL
          WHERE idempotency_key IN (?, ?) AND (${SQL_WITH_DATA} OR state = 'discarded')`,
    values: [Date.now(), ...possibleKeys(key)],
  });
}

/** The outbox stores keys in lower case; keys inserted by other programs are matched as they are. */
const possibleKeys = (key: string): string[] => [String(key), String(key).toLowerCase()];

async function changeOne(connection: Connection, table: string, key: string, statement: Statement): Promise<void> {
  const { changes } = await carryOut(connection, statement);
  if (changes === 1) return;
  const sql = `SELECT state FROM ${table} WHERE idempotency_key IN (?, ?)`;
  const { rows } = await carryOut(connection, { sql, values: possibleKeys(key) });
  throw new OutboxError(
    rows[0] === undefined
      ? `There is no lead with the key ${key}: compare the key and the table. Settled leads are deleted later.`
      : `The lead with the key ${key} is ${rows[0].state}, and its data is erased: add it again, with another key.`,
  );
}
