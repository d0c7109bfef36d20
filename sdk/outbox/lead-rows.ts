import type { LeadCapture } from '../contract.ts';
import { captureIn } from './capture-text.ts';
import { type Connection, carryOut, type Result, type Value } from './connection.ts';
import type { Outcome } from './outcome.ts';

/** A lead that is to be sent now. */
interface DueLead {
  readonly key: string;
  /** Until when it waited, as it was read; milliseconds since 1970. */
  readonly nextAttemptAt: number;
}

/** A lead that this worker has taken up. */
export interface TakenUp {
  readonly key: string;
  /** Null when what stands in the table cannot be read. */
  readonly capture: LeadCapture | null;
  readonly createdAt: Date;
  /** This one included. */
  readonly attempts: number;
}

/** What a worker reads and writes. Each write is one statement. */
export interface LeadRows {
  /** What is to be sent now, oldest first. */
  due(limit: number): Promise<readonly DueLead[]>;
  /** Takes a lead from the other workers, for a while; undefined when one of them was faster. */
  takeUp(due: DueLead): Promise<TakenUp | undefined>;
  /** Writes down what came of it, unless somebody else has settled it. */
  note(lead: TakenUp, outcome: Outcome): Promise<void>;
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
const LONGEST_BACK_OFF_MS = HOUR_MS;

/** Nothing is postponed for longer. */
const LONGEST_WAIT_MS = 24 * HOUR_MS;

/** What waits for longer than anything may was written while a clock was ahead: it is due. */
const CLOCK_WAS_AHEAD_MS = LONGEST_WAIT_MS + HOUR_MS;

/** So many rows go at once at most: a pass is not held up by them. */
const DELETED_AT_MOST = 500;

/** The leads of a table. */
export function leadsIn(connection: Connection, table: string): LeadRows {
  const run = async (sql: string, ...values: Value[]): Promise<Result> => carryOut(connection, { sql, values });
  return {
    async due(limit) {
      const now = Date.now();
      const { rows } = await run(
        `SELECT idempotency_key, next_attempt_at FROM ${table}
         WHERE state = 'waiting' AND (next_attempt_at <= ? OR next_attempt_at > ?) ORDER BY created_at LIMIT ?`,
        now,
        now + CLOCK_WAS_AHEAD_MS,
        limit,
      );
      return rows.map((row) => ({ key: String(row.idempotency_key), nextAttemptAt: Number(row.next_attempt_at) }));
    },

    async takeUp({ key, nextAttemptAt }) {
      const { changes } = await run(
        `UPDATE ${table} SET attempts = attempts + 1, next_attempt_at = ?
         WHERE idempotency_key = ? AND state = 'waiting' AND next_attempt_at = ?`,
        Date.now() + LEASE_MS,
        key,
        nextAttemptAt,
      );
      if (changes !== 1) return undefined;
      // Only now: until then a person may mend it.
      const { rows } = await run(
        `SELECT capture, created_at, attempts FROM ${table} WHERE idempotency_key = ? AND state = 'waiting'`,
        key,
      );
      return rows.map((row) => ({
        key,
        capture: captureIn(row.capture as string | null),
        createdAt: new Date(Number(row.created_at)),
        attempts: Number(row.attempts),
      }))[0];
    },

    async note({ key, attempts }, outcome) {
      const where = `WHERE idempotency_key = ? AND state = 'waiting'`;
      switch (outcome.state) {
        case 'waiting': {
          const next = Date.now() + timeToWait(attempts, outcome.retryAfterSeconds);
          await run(`UPDATE ${table} SET next_attempt_at = ?, reason = ? ${where}`, next, outcome.reason, key);
          break;
        }
        case 'refused':
          await run(`UPDATE ${table} SET state = 'refused', reason = ? ${where}`, outcome.reason, key);
          break;
        default:
          await run(
            `UPDATE ${table} SET state = ?, lead_id = ?, settled_at = ?, capture = NULL, reason = NULL ${where}`,
            outcome.state,
            outcome.leadId ?? null,
            Date.now(),
            key,
          );
      }
    },

    async deleteSettledBefore(time) {
      await run(
        `DELETE FROM ${table} WHERE idempotency_key IN (SELECT idempotency_key FROM ${table}
         WHERE state IN ('delivered', 'already_open', 'discarded') AND settled_at < ? LIMIT ${DELETED_AT_MOST})`,
        time,
      );
    },

    async countWaiting() {
      const { rows } = await run(`SELECT COUNT(*) AS waiting FROM ${table} WHERE state = 'waiting'`);
      return Number(rows[0]?.waiting);
    },
  };
}

/** Doubles with each attempt, by chance up to a half shorter; never before the service wants the next one. */
function timeToWait(attempts: number, retryAfterSeconds = 0): number {
  const backOffMs = Math.min(LONGEST_BACK_OFF_MS, FIRST_BACK_OFF_MS * 2 ** (attempts - 1));
  const waitMs = Math.max(retryAfterSeconds * SECOND_MS, backOffMs * (1 - Math.random() / 2));
  return Math.round(Math.min(LONGEST_WAIT_MS, waitMs));
}
