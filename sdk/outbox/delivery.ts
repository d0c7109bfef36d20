import type { LeadCapture } from '../api-types.ts';
import type { LeadIntakeClient } from '../client.ts';
import { REASON_UNREADABLE } from '../outcomes.ts';
import { type Connection, requireNoTransaction } from './connection.ts';
import { leadsIn, type TakenUp } from './lead-rows.ts';
import { type Outcome, readOutcome } from './outcome.ts';
import { isOfAll, isUnanswered, toReason } from './reasons.ts';
import { tellWaiting, type WaitingLeads } from './waiting.ts';

/** Options of one delivery pass. */
export interface DeliveryOptions {
  /** The maximum number of leads to send. Default: 100. */
  readonly limit?: number;
  /** How long rows of settled leads stay in the table, without their data; days. Default: 30. */
  readonly keepSettledDays?: number;
  /**
   * Called and awaited for each settled lead before its data is erased. Called at least once: a crash may cause a repeat.
   * When it throws, the lead keeps its data and is retried later. Without it, leads with a `reason` are kept.
   */
  readonly onSettled?: (lead: SettledLead) => void | Promise<void>;
  /**
   * Called and awaited at the end of a pass with the leads that have waited for more than a day, for instance to mail this.
   * Called at most once a day, over all workers. When it throws, it is called again in an hour.
   */
  readonly onWaiting?: (waiting: WaitingLeads) => void | Promise<void>;
  /** Ends the pass after the lead in flight. */
  readonly signal?: AbortSignal;
}

/** A lead that needs no further attempt. */
export interface SettledLead {
  readonly idempotencyKey: string;
  /** Whether it was created, or its contact already had an open lead. */
  readonly outcome: 'delivered' | 'already_open';
  /** The id of the created or already open lead; undefined when the API key may not read leads. */
  readonly leadId: string | undefined;
  readonly capture: LeadCapture;
  readonly createdAt: Date;
  /** Why perhaps nobody got the visitor's message; null when the service has it. */
  readonly reason: string | null;
}

/** The result of one pass, in numbers of leads. */
export interface Delivery {
  readonly delivered: number;
  /** Leads whose contact already had an open lead. */
  readonly alreadyOpen: number;
  /** Leads that the service refused; they need a person's attention. */
  readonly refused: number;
  /** Leads tried in this pass that wait for their next attempt. */
  readonly postponed: number;
  /** All waiting leads, due or not. */
  readonly waiting: number;
  /** Why the pass stopped before all due leads were tried; null when it did not. */
  readonly stoppedBecause: string | null;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** After this many consecutive leads without a response, the service is considered unavailable. */
const MAX_UNANSWERED = 3;

/** @throws TypeError when an option would delete leads that were just sent, or silently send none */
export function requireOptions({ limit = 1, keepSettledDays = 0 }: DeliveryOptions): void {
  if (!(Number.isSafeInteger(limit) && limit >= 1)) throw new TypeError('limit must be a whole number of 1 or more');
  if (!(keepSettledDays >= 0 && keepSettledDays < Number.POSITIVE_INFINITY))
    throw new TypeError('keepSettledDays must be a number of days');
}

/** Makes one pass over the due leads. Each statement is its own transaction. */
export async function deliver(
  connection: Connection,
  table: string,
  client: LeadIntakeClient,
  { limit = 100, keepSettledDays = 30, onSettled, onWaiting, signal }: DeliveryOptions = {},
): Promise<Delivery> {
  requireOptions({ limit, keepSettledDays });
  const leads = leadsIn(connection, table);
  const counts = { delivered: 0, already_open: 0, refused: 0, waiting: 0 };
  const errors: unknown[] = [];
  let unanswered = 0;
  await requireNoTransaction(connection);
  // When the service asked one lead to wait, all leads wait.
  let stoppedBecause = await leads.pause();

  for (const due of stoppedBecause === null ? await leads.due(limit) : []) {
    if (signal?.aborted) stoppedBecause = 'ended by the caller';
    if (stoppedBecause !== null) break;
    const lead = await leads.takeUp(due);
    if (lead === undefined) continue;
    const outcome = await settled(lead);
    if (await leads.note(lead, outcome)) counts[outcome.state] += 1;
    const reason = outcome.state === 'waiting' ? outcome.reason : '';
    unanswered = isUnanswered(reason) ? unanswered + 1 : 0;
    if (isOfAll(reason) || unanswered === MAX_UNANSWERED) stoppedBecause = reason;
  }

  if (counts.delivered + counts.already_open > 0) await leads.release();
  await leads.deleteSettledBefore(Math.floor(Date.now() - keepSettledDays * DAY_MS));
  if (onWaiting !== undefined) await tellWaiting(connection, table, onWaiting).catch((error) => errors.push(error));
  if (errors.length > 0)
    throw new AggregateError(errors, 'Sending a lead, onSettled or onWaiting has failed: the leads keep waiting.');
  return {
    delivered: counts.delivered,
    alreadyOpen: counts.already_open,
    refused: counts.refused,
    postponed: counts.waiting,
    waiting: await leads.countWaiting(),
    stoppedBecause,
  };

  /** Sends a lead and calls the listener. A failure keeps only that lead waiting. */
  async function settled(lead: TakenUp): Promise<Outcome> {
    let failing = '';
    try {
      const outcome = await send(lead, client);
      failing = 'listener: ';
      return await notified(lead, outcome);
    } catch (error) {
      errors.push(error);
      // Only the name of the error: its message may contain the visitor's data.
      const reason = toReason(failing + (error instanceof Error ? error.name : typeof error));
      return { state: 'waiting', reason };
    }
  }

  /** Calls the listener for a settled lead. Once the listener has returned, somebody has the data. */
  async function notified({ key, capture, createdAt }: TakenUp, outcome: Outcome): Promise<Outcome> {
    if (onSettled === undefined || outcome.state === 'waiting' || outcome.state === 'refused' || capture === null)
      return outcome;
    const { state, leadId, reason } = outcome;
    await onSettled({ idempotencyKey: key, outcome: state, leadId, capture, createdAt, reason });
    return { ...outcome, reason: null };
  }
}

async function send({ key, capture, attempts }: TakenUp, client: LeadIntakeClient): Promise<Outcome> {
  if (capture === null) return { state: 'refused', reason: REASON_UNREADABLE };
  return readOutcome(client.createLead(capture, { idempotencyKey: key }), capture, attempts);
}
