import type { LeadIntakeClient } from '../client.ts';
import type { LeadCapture } from '../contract.ts';
import type { Connection } from './connection.ts';
import { leadsIn, type TakenUp } from './lead-rows.ts';
import { type Outcome, outcomeOf, reasonOf } from './outcome.ts';

/** How one pass goes. */
export interface DeliveryOptions {
  /** How many leads are sent at most; unless told, 100. */
  readonly limit?: number;
  /** How long what is settled stays in the table, without its data; days, unless told 30. */
  readonly keepSettledDays?: number;
  /**
   * Is told of each lead that is settled, before its data is erased, and waited for. At least once: after a crash it may be
   * told again. When it throws, the lead stays with its data, and is tried again later.
   */
  readonly onSettled?: (lead: SettledLead) => void | Promise<void>;
  /** Aborted when the pass is to end, after the lead that is being sent. */
  readonly signal?: AbortSignal;
}

/** A lead that needs not be sent any more. */
export interface SettledLead {
  readonly idempotencyKey: string;
  /** Whether it was created, or the contact had an open lead already. */
  readonly outcome: 'delivered' | 'already_open';
  /** Of the lead created, or the one that was open; undefined when the API key may not read leads. */
  readonly leadId: string | undefined;
  readonly capture: LeadCapture;
  readonly createdAt: Date;
}

/** What one pass has done: numbers of leads. */
export interface Delivery {
  readonly delivered: number;
  /** The contact had an open lead already. */
  readonly alreadyOpen: number;
  /** They need a person. */
  readonly refused: number;
  /** They were tried, and wait for their next attempt. */
  readonly postponed: number;
  /** All that wait now, due or not. */
  readonly waiting: number;
  /** Why the pass ended before it was through with what was due; null when it was not so. */
  readonly stoppedBecause: string | null;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** So many in a row without an answer, and the service is taken to be away. */
const UNANSWERED_AT_MOST = 3;

/** One pass over what is due. Each of its statements is committed by itself. */
export async function deliver(
  connection: Connection,
  table: string,
  client: LeadIntakeClient,
  { limit = 100, keepSettledDays = 30, onSettled, signal }: DeliveryOptions = {},
): Promise<Delivery> {
  const leads = leadsIn(connection, table);
  const counts = { delivered: 0, already_open: 0, refused: 0, waiting: 0 };
  const errors: unknown[] = [];
  let unanswered = 0;
  // Before anything is read that is to be sent: one lead was asked to wait, and all have to.
  let stoppedBecause = await leads.pause();

  for (const due of stoppedBecause === null ? await leads.due(limit) : []) {
    if (signal?.aborted) stoppedBecause = 'ended by the caller';
    if (stoppedBecause !== null) break;
    const lead = await leads.takeUp(due);
    if (lead === undefined) continue;
    const outcome = await settled(lead);
    if (await leads.note(lead, outcome)) counts[outcome.state] += 1;
    const isUnanswered = outcome.state === 'waiting' && outcome.holdsForOthers === 'perhaps';
    unanswered = isUnanswered ? unanswered + 1 : 0;
    if (outcome.state !== 'waiting') continue;
    if (outcome.holdsForOthers === 'yes' || unanswered === UNANSWERED_AT_MOST) stoppedBecause = outcome.reason;
  }

  await leads.deleteSettledBefore(Math.floor(Date.now() - keepSettledDays * DAY_MS));
  if (errors.length > 0)
    throw new AggregateError(errors, 'Sending leads or telling of them has thrown: these leads stay, and wait.');
  return {
    delivered: counts.delivered,
    alreadyOpen: counts.already_open,
    refused: counts.refused,
    postponed: counts.waiting,
    waiting: await leads.countWaiting(),
    stoppedBecause,
  };

  /** Sends a lead, and tells the listener of it. Whatever fails keeps that lead waiting, and no other. */
  async function settled(lead: TakenUp): Promise<Outcome> {
    let failing = '';
    try {
      const outcome = await send(lead, client);
      failing = 'listener: ';
      await tell(lead, outcome);
      return outcome;
    } catch (error) {
      errors.push(error);
      // Its message may have the visitor's data in it.
      const reason = reasonOf(failing + (error instanceof Error ? error.name : typeof error));
      return { state: 'waiting', reason, holdsForOthers: 'no' };
    }
  }

  async function tell({ key, capture, createdAt }: TakenUp, outcome: Outcome): Promise<void> {
    if (outcome.state === 'waiting' || outcome.state === 'refused' || capture === null) return;
    const { state, leadId } = outcome;
    await onSettled?.({ idempotencyKey: key, outcome: state, leadId, capture, createdAt });
  }
}

async function send({ key, capture }: TakenUp, client: LeadIntakeClient): Promise<Outcome> {
  if (capture === null) return { state: 'refused', reason: 'unreadable: the data in the table is no JSON object' };
  return outcomeOf(client.createLead(capture, { idempotencyKey: key }));
}
