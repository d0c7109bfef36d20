import type { Lead } from '../api-types.ts';
import { isOf } from '../repeated.ts';
import { captureIn } from './capture-text.ts';
import { type Connection, captureColumn, carryOut, keyIn, type Row } from './connection.ts';
import type { Difference, StoredRun } from './reconciliation.ts';

/** A row of a sent lead. */
export interface SentRow {
  readonly key: string;
  readonly leadId: string;
  readonly state: Difference['state'];
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** Whether the table still has the visitor's data. */
  readonly hasData: boolean;
}

export type SentRows = ReturnType<typeof sentRowsIn>;

/** The number of rows in memory at a time. */
const BATCH_SIZE = 500;

const SENT = "state IN ('delivered', 'already_open')";

/** Returns the reads of a comparison. */
export function sentRowsIn(connection: Connection, table: string) {
  const select = async (sql: string, ...values: string[]) => (await carryOut(connection, { sql, values })).rows;
  return {
    /** Counts the rows to compare, when a comparison begins. */
    async overview(): Promise<Pick<StoredRun, 'upTo' | 'rows' | 'since' | 'withoutId'>> {
      // Times as text: the stored integer may exceed what drivers can read.
      const [row] = await select(
        `SELECT COUNT(lead_id) AS number, COUNT(*) AS total, MAX(lead_id) AS up_to, CAST(MIN(settled_at) AS TEXT) AS since
         FROM ${table} WHERE ${SENT}`,
      );
      const { number, total, up_to: upTo, since } = row ?? {};
      const rows = Number(number);
      return {
        rows,
        withoutId: Number(total) - rows,
        upTo: String(upTo ?? ''),
        since: since === null ? null : Number(since),
      };
    },

    /** Returns the next rows by descending id and key, up to an id, and behind a row if there is one. */
    async behind(upTo: string, after: StoredRun['after']): Promise<SentRow[]> {
      const [id, key] = after ?? [];
      const isBehind = id === undefined ? '' : 'AND (lead_id < ? OR (lead_id = ? AND idempotency_key < ?))';
      const rows = await select(
        `SELECT idempotency_key, lead_id, state, CAST(created_at AS TEXT) AS created_at,
           CASE WHEN capture IS NULL THEN 0 ELSE 1 END AS has_data
         FROM ${table} WHERE ${SENT} AND lead_id <= ? ${isBehind}
         ORDER BY lead_id DESC, idempotency_key DESC LIMIT ${BATCH_SIZE}`,
        upTo,
        ...(id === undefined ? [] : [id, id, key ?? '']),
      );
      return rows.map(sentRow);
    },

    /** Whether a lead has other data than its row has kept. */
    async haveOther({ key, state }: SentRow, lead: Lead): Promise<boolean> {
      // An already open lead comes from another creation.
      if (state !== 'delivered') return false;
      const [row] = await select(`SELECT ${captureColumn(connection)} FROM ${table} WHERE idempotency_key = ?`, key);
      const capture = captureIn(row?.capture);
      return capture !== null && !isOf({ ...capture }, { ...lead });
    },

    /** Counts the leads that are not sent. */
    async unsent(): Promise<Pick<StoredRun, 'waiting' | 'refused'>> {
      const counts = { waiting: 0, refused: 0 };
      const rows = await select(
        `SELECT state, COUNT(*) AS number FROM ${table} WHERE state IN ('waiting', 'refused') GROUP BY state`,
      );
      for (const { state, number } of rows) counts[state as keyof typeof counts] = Number(number);
      return counts;
    },
  };
}

const sentRow = (row: Row): SentRow => ({
  key: keyIn(row),
  leadId: String(row.lead_id),
  state: row.state as SentRow['state'],
  createdAt: Number(row.created_at),
  hasData: Number(row.has_data) === 1,
});
