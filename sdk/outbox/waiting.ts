import { SQL_WITH_DATA } from '../outcomes.ts';
import { type Connection, carryOut, toDate, type Value } from './connection.ts';
import { openMemo } from './memo.ts';

/** A summary of waiting leads, such as those that have waited for more than a day. Has no personal data. */
export interface WaitingLeads {
  readonly count: number;
  /** When the oldest of them was stored, by the website's clock. */
  readonly oldest: Date;
  /** Why they wait, most frequent first, such as `401 integration_key_invalid`; at most 20. */
  readonly reasons: readonly { readonly reason: string; readonly count: number }[];
}

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

/** The length of a reason's beginning by which leads are counted, and the maximum number of reasons. */
const REASON_START = 36;
const MAX_REASONS = 20;

/** Reports leads that have waited for more than a day: at most once a day, and again an hour after a failure. */
export async function tellWaiting(
  connection: Connection,
  table: string,
  onWaiting: (waiting: WaitingLeads) => void | Promise<void>,
): Promise<void> {
  const now = Date.now();
  const memo = await openMemo(connection, table, 'waiting');
  const { token } = await memo.read();
  if (Math.abs(now - Number(token)) < DAY_MS) return;
  // One of several workers looks. It looks again in an hour if there is nothing to report or the report fails.
  const anHourOn = String(now - DAY_MS + HOUR_MS);
  if (!(await memo.write('', anHourOn, token))) return;
  const waiting = await leadsWhere(connection, table, `${SQL_WITH_DATA} AND (created_at < ? OR created_at > ?)`, [
    now - DAY_MS,
    now + DAY_MS,
  ]);
  if (waiting === null) return;
  await onWaiting(waiting);
  await memo.write('', String(now), anHourOn);
}

/** Summarizes the waiting leads; null: there are none. */
export const waitingLeads = (connection: Connection, table: string): Promise<WaitingLeads | null> =>
  leadsWhere(connection, table, "state = 'waiting'", []);

async function leadsWhere(
  connection: Connection,
  table: string,
  condition: string,
  values: readonly Value[],
): Promise<WaitingLeads | null> {
  const { rows } = await carryOut(connection, {
    sql: `SELECT SUBSTR(reason, 1, ${REASON_START}) AS reason, COUNT(*) AS number, CAST(MIN(created_at) AS TEXT) AS oldest FROM ${table}
          WHERE ${condition} GROUP BY 1`,
    values,
  });
  if (rows.length === 0) return null;
  const counts = new Map<string, number>();
  for (const { reason, number } of rows) {
    const [start = ''] = String(reason || 'not tried yet').split(':');
    counts.set(start, (counts.get(start) ?? 0) + Number(number));
  }
  const reasons = [...counts].map(([reason, count]) => ({ reason, count }));
  reasons.sort((a, b) => b.count - a.count || (a.reason < b.reason ? -1 : 1));
  return {
    count: reasons.reduce((sum, { count }) => sum + count, 0),
    oldest: toDate(Math.min(...rows.map(({ oldest }) => Number(oldest)))),
    reasons: reasons.slice(0, MAX_REASONS),
  };
}
