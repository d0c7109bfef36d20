import { SQL_WITH_DATA } from '../outcomes.ts';
import { type Connection, carryOut, dateOf } from './connection.ts';
import { memoOf } from './memo.ts';

/** What has waited for longer than a day, for the service or for a person. It has no personal data. */
export interface WaitingLeads {
  readonly count: number;
  /** When the oldest of them was stored, by the website's clock. */
  readonly oldest: Date;
  /** Why they wait, most frequent first, such as `401 integration_key_invalid`; at most 20. */
  readonly reasons: readonly { readonly reason: string; readonly count: number }[];
}

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

/** The beginnings of reasons that differ, and the reasons that somebody is told. */
const REASON_START = 36;
const MAX_REASONS = 20;

/** Tells somebody what has waited for longer than a day: once a day at most, and once more after an hour if that fails. */
export async function tellWaiting(
  connection: Connection,
  table: string,
  onWaiting: (waiting: WaitingLeads) => void | Promise<void>,
): Promise<void> {
  const now = Date.now();
  const memo = await memoOf(connection, table, 'waiting');
  const { token } = await memo.read();
  if (Math.abs(now - Number(token)) < DAY_MS) return;
  // Of several workers one looks; if there is nothing, or telling it fails, again in an hour.
  const anHourOn = String(now - DAY_MS + HOUR_MS);
  if (!(await memo.write('', anHourOn, token))) return;
  const waiting = await waitingLeads(connection, table, now);
  if (waiting === undefined) return;
  await onWaiting(waiting);
  await memo.write('', String(now), anHourOn);
}

async function waitingLeads(connection: Connection, table: string, now: number): Promise<WaitingLeads | undefined> {
  const { rows } = await carryOut(connection, {
    sql: `SELECT SUBSTR(reason, 1, ${REASON_START}) AS reason, COUNT(*) AS number, CAST(MIN(created_at) AS TEXT) AS oldest FROM ${table}
          WHERE ${SQL_WITH_DATA} AND (created_at < ? OR created_at > ?) GROUP BY 1`,
    values: [now - DAY_MS, now + DAY_MS],
  });
  if (rows.length === 0) return undefined;
  const counts = new Map<string, number>();
  for (const { reason, number } of rows) {
    const [start = ''] = String(reason ?? 'not tried yet').split(':');
    counts.set(start, (counts.get(start) ?? 0) + Number(number));
  }
  const reasons = [...counts].map(([reason, count]) => ({ reason, count }));
  reasons.sort((a, b) => b.count - a.count || (a.reason < b.reason ? -1 : 1));
  return {
    count: reasons.reduce((sum, { count }) => sum + count, 0),
    oldest: dateOf(Math.min(...rows.map(({ oldest }) => Number(oldest)))),
    reasons: reasons.slice(0, MAX_REASONS),
  };
}
