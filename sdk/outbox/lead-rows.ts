import type { LeadCapture } from '../api-types.ts';
import { captureIn } from './capture-text.ts';
import { type Connection, captureColumn, carryOut, keyIn, type Result, toDate, type Value } from './connection.ts';
import type { Outcome } from './outcome.ts';
import { IS_PAUSE, OF_CONFIGURATION } from './reasons.ts';
import { MAX_WAIT_MS, waitMs } from './retries.ts';

/** A lead that is due. */
interface DueLead {
  readonly key: string;
  /** The stored time as text: the integer may exceed what drivers can read. */
  readonly nextAttemptAt: string;
}

/** A lead that this worker has leased. */
export interface TakenUp {
  readonly key: string;
  /** Null when the stored text cannot be read. */
  readonly capture: LeadCapture | null;
  readonly createdAt: Date;
  /** Includes this attempt. */
  readonly attempts: number;
  /** When the lease ends; milliseconds since 1970. */
  readonly leaseEnd: number;
}

/** The reads and writes of a worker. Each write is one statement. */
export interface LeadRows {
  /** Returns the reason of a requested pause that has not ended; until then, nothing is sent. Null: there is none. */
  pause(): Promise<string | null>;
  /**
   * Returns the due leads, fewest attempts first, then those due for longest. Thus leads that never get a response, or whose
   * attempts do not count, cannot block others.
   */
  due(limit: number): Promise<readonly DueLead[]>;
  /** Leases a lead; undefined when another worker was faster. */
  takeUp(due: DueLead): Promise<TakenUp | undefined>;
  /** Stores the outcome unless the row was changed in the meantime; returns whether it was stored. */
  note(lead: TakenUp, outcome: Outcome): Promise<boolean>;
  /** Makes the leads due that wait because of the configuration. */
  release(): Promise<void>;
  /** Deletes leads that were settled before a time; milliseconds since 1970. */
  deleteSettledBefore(time: number): Promise<void>;
  /** Counts the waiting leads, due or not. */
  countWaiting(): Promise<number>;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The lease on a lead in flight. When its worker is killed, the lead is sent again only after this time. */
const LEASE_MS = 5 * MINUTE_MS;

/** A row whose next attempt is further away was written while a clock was ahead: it counts as due. */
const CLOCK_WAS_AHEAD_MS = MAX_WAIT_MS + HOUR_MS;

/** The maximum number of rows that a pass deletes, so that deleting does not delay it. */
const MAX_DELETED_ROWS = 500;

/** Executes a statement. */
type Run = (sql: string, ...values: Value[]) => Promise<Result>;

/** Returns access to the leads of a table. */
export function leadsIn(connection: Connection, table: string): LeadRows {
  const run: Run = async (sql, ...values) => carryOut(connection, { sql, values });
  return {
    async pause() {
      const now = Date.now();
      const { rows } = await run(
        `SELECT reason FROM ${table} WHERE state = 'waiting' AND next_attempt_at > ? AND next_attempt_at <= ?
         AND ${IS_PAUSE} LIMIT 1`,
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
         ORDER BY attempts, next_attempt_at, created_at LIMIT ?`,
        now,
        now + CLOCK_WAS_AHEAD_MS,
        limit,
      );
      return rows.map((row) => ({ key: keyIn(row), nextAttemptAt: String(row.was_next) }));
    },

    async takeUp({ key, nextAttemptAt }) {
      const leaseEnd = Date.now() + LEASE_MS;
      const { changes } = await run(
        // Clears the previous reason, which would make the end of the lease a pause.
        `UPDATE ${table} SET attempts = attempts + 1, next_attempt_at = ?, reason = NULL
         WHERE idempotency_key = ? AND state = 'waiting' AND next_attempt_at = ?`,
        leaseEnd,
        key,
        nextAttemptAt,
      );
      if (changes !== 1) return undefined;
      // Read after leasing: until then, a person may change the data.
      const { rows } = await run(
        `SELECT ${captureColumn(connection)}, CAST(created_at AS TEXT) AS created_at, attempts FROM ${table}
         WHERE idempotency_key = ? AND state = 'waiting'`,
        key,
      );
      return rows.map((row) => ({
        key,
        capture: captureIn(row.capture),
        createdAt: toDate(row.created_at),
        attempts: Number(row.attempts),
        leaseEnd,
      }))[0];
    },

    async note({ key, attempts, leaseEnd }, outcome) {
      const [set, values] = written(outcome, attempts);
      // A concurrent retry, discard or lease takes precedence.
      const { changes } = await run(
        `UPDATE ${table} SET ${set} WHERE idempotency_key = ? AND state = 'waiting' AND next_attempt_at = ?`,
        ...values,
        key,
        leaseEnd,
      );
      return changes === 1;
    },

    async release() {
      const now = Date.now();
      await run(
        `UPDATE ${table} SET next_attempt_at = ? WHERE state = 'waiting' AND next_attempt_at > ? AND ${OF_CONFIGURATION}`,
        now,
        now,
      );
    },

    deleteSettledBefore: (time) => deleteSettledBefore(run, table, time),

    async countWaiting() {
      const { rows } = await run(`SELECT COUNT(*) AS waiting FROM ${table} WHERE state = 'waiting'`);
      return Number(rows[0]?.waiting);
    },
  };
}

async function deleteSettledBefore(run: Run, table: string, time: number): Promise<void> {
  // Select first: a DELETE blocks other writers even when it matches no row.
  const { rows } = await run(
    `SELECT idempotency_key FROM ${table} WHERE state IN ('delivered', 'already_open', 'discarded')
     AND settled_at < ? LIMIT ${MAX_DELETED_ROWS}`,
    time,
  );
  if (rows.length === 0) return;
  const places = rows.map(() => '?').join(', ');
  await run(`DELETE FROM ${table} WHERE idempotency_key IN (${places})`, ...rows.map(keyIn));
}

/** Returns the assignments that store an outcome, and their values. */
function written(outcome: Outcome, attempts: number): readonly [string, readonly Value[]] {
  switch (outcome.state) {
    case 'waiting': {
      const { reason, isFree = false } = outcome;
      return [
        `next_attempt_at = ?, reason = ?, attempts = ${isFree ? attempts - 1 : attempts}`,
        [Date.now() + waitMs(outcome, attempts), reason],
      ];
    }
    case 'refused':
      return [`state = 'refused', reason = ?`, [outcome.reason]];
    default: {
      const { state, leadId = null, reason } = outcome;
      return reason === null
        ? ['state = ?, lead_id = ?, settled_at = ?, capture = NULL, reason = NULL', [state, leadId, Date.now()]]
        : ['state = ?, lead_id = ?, reason = ?', [state, leadId, reason]];
    }
  }
}
