import type { LeadCapture } from '../contract.ts';
import { captureIn } from './capture-text.ts';
import { type Connection, carryOut, dateOf, keyIn, type Result, type Value } from './connection.ts';
import type { Outcome } from './outcome.ts';

/** A lead that is to be sent now. */
interface DueLead {
  readonly key: string;
  /** Until when it waited, as the table has it: a whole number may be larger than drivers read. */
  readonly nextAttemptAt: string;
}

/** A lead that this worker has taken up. */
export interface TakenUp {
  readonly key: string;
  /** Null when what stands in the table cannot be read. */
  readonly capture: LeadCapture | null;
  readonly createdAt: Date;
  /** This one included. */
  readonly attempts: number;
  /** Until when it is this worker's; milliseconds since 1970. */
  readonly leaseEnd: number;
}

/** What a worker reads and writes. Each write is one statement. */
export interface LeadRows {
  /** Why nothing is to be sent for a while; null when it may be: the service has asked for a pause that is not over. */
  pause(): Promise<string | null>;
  /** What is to be sent now, fewest attempts first: what gets no answer for ever must not keep the others back. */
  due(limit: number): Promise<readonly DueLead[]>;
  /** Takes a lead from the other workers, for a while; undefined when one of them was faster. */
  takeUp(due: DueLead): Promise<TakenUp | undefined>;
  /** Writes down what came of it, unless somebody has changed it meanwhile; tells whether it has. */
  note(lead: TakenUp, outcome: Outcome): Promise<boolean>;
  /** Removes rows of leads that were settled before then; milliseconds since 1970. */
  deleteSettledBefore(time: number): Promise<void>;
  /** How many wait, due or not. */
  countWaiting(): Promise<number>;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** How long a lead is left to the worker that has taken it up: who is killed meanwhile is waited for that long. */
const LEASE_MS = 5 * MINUTE_MS;

const FIRST_BACK_OFF_MS = 30 * SECOND_MS;
const MAX_BACK_OFF_MS = HOUR_MS;

/** Nothing is postponed for longer. */
const MAX_WAIT_MS = 24 * HOUR_MS;

/** What waits for longer than anything may was written while a clock was ahead: it is due. */
const CLOCK_WAS_AHEAD_MS = MAX_WAIT_MS + HOUR_MS;

/** So many rows go at once at most: a pass is not held up by them. */
const DELETED_AT_MOST = 500;

/** The leads of a table. */
export function leadsIn(connection: Connection, table: string): LeadRows {
  const run = async (sql: string, ...values: Value[]): Promise<Result> => carryOut(connection, { sql, values });
  return {
    async pause() {
      const now = Date.now();
      const { rows } = await run(
        `SELECT reason FROM ${table} WHERE state = 'waiting' AND next_attempt_at > ? AND next_attempt_at <= ?
         AND reason LIKE '429 %' LIMIT 1`,
        now,
        now + CLOCK_WAS_AHEAD_MS,
      );
      return (rows[0]?.reason ?? null) as string | null;
    },

    async due(limit) {
      const now = Date.now();
      const { rows } = await run(
        `SELECT idempotency_key, CAST(next_attempt_at AS TEXT) AS was_next FROM ${table}
         WHERE state = 'waiting' AND (next_attempt_at <= ? OR next_attempt_at > ?)
         ORDER BY attempts, created_at LIMIT ?`,
        now,
        now + CLOCK_WAS_AHEAD_MS,
        limit,
      );
      return rows.map((row) => ({ key: keyIn(row), nextAttemptAt: String(row.was_next) }));
    },

    async takeUp({ key, nextAttemptAt }) {
      const leaseEnd = Date.now() + LEASE_MS;
      const { changes } = await run(
        `UPDATE ${table} SET attempts = attempts + 1, next_attempt_at = ?
         WHERE idempotency_key = ? AND state = 'waiting' AND next_attempt_at = ?`,
        leaseEnd,
        key,
        nextAttemptAt,
      );
      if (changes !== 1) return undefined;
      // Only now: until then a person may mend it.
      const { rows } = await run(
        `SELECT capture, CAST(created_at AS TEXT) AS created_at, attempts FROM ${table}
         WHERE idempotency_key = ? AND state = 'waiting'`,
        key,
      );
      return rows.map((row) => ({
        key,
        capture: captureIn(row.capture as string | null),
        createdAt: dateOf(row.created_at),
        attempts: Number(row.attempts),
        leaseEnd,
      }))[0];
    },

    async note({ key, attempts, leaseEnd }, outcome) {
      const [set, values] = written(outcome, attempts);
      // Who has mended, discarded or taken it up meanwhile has the last word.
      const { changes } = await run(
        `UPDATE ${table} SET ${set} WHERE idempotency_key = ? AND state = 'waiting' AND next_attempt_at = ?`,
        ...values,
        key,
        leaseEnd,
      );
      return changes === 1;
    },

    async deleteSettledBefore(time) {
      // Found first: a DELETE holds the others up however few it finds.
      const { rows } = await run(
        `SELECT idempotency_key FROM ${table} WHERE state IN ('delivered', 'already_open', 'discarded')
         AND settled_at < ? LIMIT ${DELETED_AT_MOST}`,
        time,
      );
      if (rows.length === 0) return;
      const places = rows.map(() => '?').join(', ');
      await run(`DELETE FROM ${table} WHERE idempotency_key IN (${places})`, ...rows.map(keyIn));
    },

    async countWaiting() {
      const { rows } = await run(`SELECT COUNT(*) AS waiting FROM ${table} WHERE state = 'waiting'`);
      return Number(rows[0]?.waiting);
    },
  };
}

/** What an outcome changes in the row of a lead: assignments, and their values. */
function written(outcome: Outcome, attempts: number): readonly [string, readonly Value[]] {
  switch (outcome.state) {
    case 'waiting': {
      const next = Date.now() + timeToWait(attempts, outcome.retryAfterSeconds);
      return ['next_attempt_at = ?, reason = ?', [next, outcome.reason]];
    }
    case 'refused':
      return [`state = 'refused', reason = ?`, [outcome.reason]];
    default: {
      const set = 'state = ?, lead_id = ?, settled_at = ?, capture = NULL, reason = NULL';
      return [set, [outcome.state, outcome.leadId ?? null, Date.now()]];
    }
  }
}

/** Doubles with each attempt, by chance up to a half shorter; never before the service wants the next one. */
function timeToWait(attempts: number, retryAfterSeconds = 0): number {
  const backOffMs = Math.min(MAX_BACK_OFF_MS, FIRST_BACK_OFF_MS * 2 ** (attempts - 1));
  const waitMs = Math.max(retryAfterSeconds * SECOND_MS, backOffMs * (1 - Math.random() / 2));
  return Math.round(Math.min(MAX_WAIT_MS, waitMs));
}
