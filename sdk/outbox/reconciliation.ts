import { REASON_NOT_READ, REASON_NOT_THERE, REASON_OTHER_DATA } from '../outcomes.ts';
import { toDate } from './connection.ts';

/** A lead that differs between the outbox and the service, or could not be read. Has no personal data. */
export interface Difference {
  readonly idempotencyKey: string;
  /** The id that the service had returned. */
  readonly leadId: string;
  /** `already_open`: the id is that of the contact's open lead, which another creation made. */
  readonly state: 'delivered' | 'already_open';
  /** `not_there`: no lead with the id can be read. `other_data`: a text differs from the one that was sent. `not_read`: not known. */
  readonly kind: 'not_there' | 'other_data' | 'not_read';
  /** A possible cause, in one sentence. */
  readonly reason: string;
  /** When the lead was stored in the outbox, by the website's clock. */
  readonly createdAt: Date;
}

/** The findings of a comparison of an outbox with the service, complete or so far. */
export interface Reconciliation {
  readonly isComplete: boolean;
  /** Why it is not complete; null when it is. The next call continues where it stopped. */
  readonly stoppedBecause: string | null;
  readonly startedAt: Date;
  /** When the oldest of the rows without data was settled; null when there are none. Older ones are deleted. */
  readonly since: Date | null;
  /** Leads that were delivered, and how many of these are there. */
  readonly sent: number;
  readonly there: number;
  /** Leads whose contact had an open lead of another creation, and how many of those open leads are there. */
  readonly alreadyOpen: number;
  readonly openLeadThere: number;
  /** How many of the leads that are there have other data than the outbox has kept. */
  readonly otherData: number;
  /** Leads that the service has failed to read, so that they may be there or not. */
  readonly notRead: number;
  /** Leads without an id in the outbox: the API key could not read leads when they were sent. */
  readonly withoutId: number;
  /** Leads still to compare. */
  readonly left: number;
  /** Leads that are not sent: those that wait, and those that were refused. */
  readonly waiting: number;
  readonly refused: number;
  /** The first 100 differences, newest leads first. */
  readonly differences: readonly Difference[];
  /** The number of requests to the service. */
  readonly requests: number;
  /** The numbers in plain sentences: `1,204 sent since 2026-10-28, 1,204 there.` */
  readonly summary: string;
}

/** A comparison as all outboxes store it: JSON, whose times are milliseconds since 1970. */
export interface StoredRun {
  startedAt: number;
  isComplete: boolean;
  stoppedBecause: string | null;
  /** The newest id when it began. */
  upTo: string;
  /** Id and key of the last compared row. */
  after: [leadId: string, key: string] | null;
  /** The cursor of the next page; null: the first one. */
  cursor: string | null;
  /** Whether it reads pages; otherwise it reads leads one by one. */
  isPaging: boolean;
  /** The number of pages without a lead of the outbox. */
  idlePages: number;
  requests: number;
  /** The number of rows when it began. */
  rows: number;
  /** The earliest time at which a row was settled. Rows that a person has to see may be far older. */
  since: number | null;
  sent: number;
  there: number;
  alreadyOpen: number;
  openLeadThere: number;
  otherData: number;
  notRead: number;
  withoutId: number;
  waiting: number;
  refused: number;
  /** The id of a lead of this studio; null: none was seen yet. */
  seen: string | null;
  /** How many leads in a row that no page had could not be read one by one either. */
  confirmed: number;
  differences: StoredDifference[];
}

export interface StoredDifference {
  key: string;
  leadId: string;
  state: Difference['state'];
  kind: Difference['kind'];
  createdAt: number;
}

/** The number of leads that were compared. */
export const doneIn = ({ sent, alreadyOpen }: StoredRun): number => sent + alreadyOpen;

const REASONS = { not_there: REASON_NOT_THERE, other_data: REASON_OTHER_DATA, not_read: REASON_NOT_READ };

export const toDifference = ({ key, createdAt, ...rest }: StoredDifference): Difference => ({
  idempotencyKey: key,
  ...rest,
  reason: REASONS[rest.kind],
  createdAt: toDate(createdAt),
});

export function toReconciliation(run: StoredRun): Reconciliation {
  const left = run.isComplete ? 0 : Math.max(0, run.rows - doneIn(run));
  return {
    isComplete: run.isComplete,
    stoppedBecause: run.stoppedBecause,
    startedAt: toDate(run.startedAt),
    since: run.since === null ? null : toDate(run.since),
    sent: run.sent,
    there: run.there,
    alreadyOpen: run.alreadyOpen,
    openLeadThere: run.openLeadThere,
    otherData: run.otherData,
    notRead: run.notRead,
    withoutId: run.withoutId,
    left,
    waiting: run.waiting,
    refused: run.refused,
    differences: run.differences.map(toDifference),
    requests: run.requests,
    summary: summarize(run, left),
  };
}

/** Returns the summary, in the same sentences in all languages. */
function summarize(run: StoredRun, left: number): string {
  const { sent, there, alreadyOpen, openLeadThere, otherData, notRead, withoutId, waiting, refused } = run;
  const number = (value: number) => value.toLocaleString('en-US');
  const since = run.since === null ? '' : ` since ${toDate(run.since).toISOString().split('T')[0]}`;
  const isNoneThere = sent + alreadyOpen > 0 && there + openLeadThere === 0;
  return [
    ...(run.isComplete ? [] : [`Not finished, ${number(left)} left (${run.stoppedBecause}). So far:`]),
    `${number(sent)} sent${since}, ${number(there)} there.`,
    ...(alreadyOpen > 0
      ? [`${number(alreadyOpen)} with an open lead of another creation, ${number(openLeadThere)} of these leads there.`]
      : []),
    ...(isNoneThere ? ['None is there: is the API key of another studio, or the address of another deployment?'] : []),
    ...(otherData > 0 ? [`${number(otherData)} there with other data.`] : []),
    ...(notRead > 0 ? [`${number(notRead)} that the service has failed to read.`] : []),
    ...(withoutId > 0 ? [`${number(withoutId)} not compared: the outbox has no id of their leads.`] : []),
    ...(waiting > 0 ? [`${number(waiting)} waiting.`] : []),
    ...(refused > 0 ? [`${number(refused)} refused.`] : []),
  ].join(' ');
}
