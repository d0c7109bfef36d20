import type { LeadCapture } from '../api-types.ts';
import type { LeadIntakeClient } from '../client.ts';
import { ProblemError } from '../errors.ts';
import { captureIn, toText } from './capture-text.ts';
import { type Connection, captureColumn, carryOut, keyIn } from './connection.ts';
import { OutboxError } from './outbox-error.ts';

/** Options for sending a missing lead again. */
export interface SendAgainOptions {
  /** The data, if the outbox has erased it. Default: the data that the outbox has kept. */
  readonly capture?: LeadCapture;
  /** Confirms that this may create another lead: a service that has lost the lead has lost its key, too. */
  readonly mayCreate: boolean;
}

/** Schedules a sent lead that the service no longer has to be sent again, with its key. */
export async function sendAgain(
  connection: Connection,
  table: string,
  client: LeadIntakeClient,
  key: string,
  { capture, mayCreate }: SendAgainOptions,
): Promise<void> {
  const { rows } = await carryOut(connection, {
    sql: `SELECT idempotency_key, lead_id, ${captureColumn(connection)} FROM ${table}
          WHERE idempotency_key IN (?, ?) AND state IN ('delivered', 'already_open')`,
    values: [key, key.toLowerCase()],
  });
  const [row] = rows;
  if (row === undefined) throw new OutboxError(`There is no lead with the key ${key} that was sent.`);
  const kept = captureIn(row.capture);
  const data = capture ?? kept;
  if (data === null)
    throw new OutboxError(`The data of the lead with the key ${key} is erased: pass it, to send it again.`);
  if (!mayCreate) {
    throw new OutboxError(
      `If the service no longer has the key ${key}, such as after its database was restored, this creates another lead: confirm that by mayCreate.`,
    );
  }
  if (row.lead_id !== null && (await isThere(client, String(row.lead_id))))
    throw new OutboxError(`The lead with the key ${key} is at the service: there is nothing to send.`);
  const { changes } = await carryOut(connection, {
    // Counts as a second attempt, because the service may have the lead after all.
    sql: `UPDATE ${table} SET state = 'waiting', attempts = 1, next_attempt_at = ?, settled_at = NULL, reason = NULL, capture = ?
          WHERE idempotency_key = ? AND state IN ('delivered', 'already_open')`,
    values: [Date.now(), toText(data), keyIn(row)],
  });
  if (changes !== 1) throw new OutboxError(`The lead with the key ${key} was changed in the meantime.`);
}

async function isThere(client: LeadIntakeClient, leadId: string): Promise<boolean> {
  try {
    await client.getLead(leadId);
    return true;
  } catch (error) {
    if (error instanceof ProblemError && error.code === 'integration_lead_not_found') return false;
    throw error;
  }
}
