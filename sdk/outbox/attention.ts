import type { LeadCapture } from '../contract.ts';
import { captureIn, textOf } from './capture-text.ts';
import { type Connection, carryOut, dateOf, keyIn, type Value } from './connection.ts';
import { OutboxError } from './outbox-error.ts';
import { STATUSES_OF_THE_KEY } from './outcome.ts';

/** A lead that a person should look at. */
export interface LeadInNeed {
  readonly idempotencyKey: string;
  /** `refused`: it is not tried any more. `waiting`: it is, and will be held up again unless somebody does something. */
  readonly state: 'refused' | 'waiting';
  readonly createdAt: Date;
  /** How often it was taken up to be sent. */
  readonly attempts: number;
  /** Why it is not delivered; null when nothing is known of it yet. */
  readonly reason: string | null;
  /** The data, to help by hand; null when what stands in the table cannot be read. */
  readonly capture: LeadCapture | null;
}

/** Who waits for longer needs a person, and who was stored by a clock that was so much ahead; milliseconds. */
const WAITS_TOO_LONG_MS = 24 * 60 * 60 * 1000;

const OF_THE_KEY = STATUSES_OF_THE_KEY.map((status) => `reason LIKE '${status} %'`).join(' OR ');
const IN_NEED = `state = 'refused' OR (state = 'waiting' AND (created_at < ? OR created_at > ? OR ${OF_THE_KEY}))`;

/** The leads that need a person, oldest first, and how many there are of them. */
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
    // A whole number may be larger than drivers read.
    sql: `SELECT idempotency_key, state, CAST(created_at AS TEXT) AS created_at, attempts, reason, capture FROM ${table}
          WHERE ${IN_NEED} ORDER BY ${table}.created_at LIMIT ?`,
    values: [...times, limit],
  });
  const entries = rows.map((row) => ({
    idempotencyKey: keyIn(row),
    state: row.state as LeadInNeed['state'],
    createdAt: dateOf(row.created_at),
    attempts: Number(row.attempts),
    reason: row.reason as string | null,
    capture: captureIn(row.capture as string | null),
  }));
  return { count: Number(counted.rows[0]?.total), entries };
}

/** Has a lead sent again, as it stands or with other data. */
export async function retry(connection: Connection, table: string, key: string, capture?: LeadCapture): Promise<void> {
  const data: readonly Value[] = capture === undefined ? [] : [textOf(capture)];
  await changeOne(connection, key, {
    sql: `UPDATE ${table} SET state = 'waiting', attempts = 0, next_attempt_at = ?, reason = NULL
          ${data.length > 0 ? ', capture = ?' : ''} WHERE idempotency_key IN (?, ?) AND state IN ('waiting', 'refused')`,
    values: [Date.now(), ...data, ...asStored(key)],
  });
}

/** Gives a lead up, and erases its data. */
export async function discard(connection: Connection, table: string, key: string): Promise<void> {
  await changeOne(connection, key, {
    sql: `UPDATE ${table} SET state = 'discarded', settled_at = COALESCE(settled_at, ?), capture = NULL, reason = NULL
          WHERE idempotency_key IN (?, ?) AND state IN ('waiting', 'refused', 'discarded')`,
    values: [Date.now(), ...asStored(key)],
  });
}

/** Whatever has come into the table can be got out of it; what the outbox has stored is in lower case. */
const asStored = (key: string): string[] => [String(key), String(key).toLowerCase()];

async function changeOne(connection: Connection, key: string, statement: Parameters<typeof carryOut>[1]) {
  const { changes } = await carryOut(connection, statement);
  if (changes !== 1) throw new OutboxError(`No lead with the key ${key} is there that is not settled yet.`);
}
