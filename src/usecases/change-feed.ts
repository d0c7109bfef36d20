import { setTimeout as sleep } from 'node:timers/promises';
import { assert } from '../../common/invariants.ts';
import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import { type Acknowledgement, type LeadChange, MAX_ACKNOWLEDGEMENTS } from '../domain/lead-change.ts';
import { Faults } from '../domain/refusal.ts';
import type { LeadChangeStore } from '../store/store.ts';
import type { Changing, Reading } from './dependencies.ts';
import { pageLimit } from './read-leads.ts';
import { partsOf, startOfPage, tokenAfter } from './requests.ts';

/** The maximum number of leads that a poll returns. Later ones are returned once these are acknowledged. */
export const MAX_LEADS_PER_POLL = 200;

/** The minimum interval between polls; milliseconds. It bounds the delay of a change that another process wrote. */
const MIN_INTERVAL_MS = 50;

/** The interval is at least 4 times as long as a poll took: polls use at most a fifth of the time; milliseconds. */
const INTERVAL_PER_POLL = 4;
const MAX_INTERVAL_MS = 1000;

/** The result of a poll. Successive polls return the same object while the changes are the same. */
export interface PollResult {
  readonly changes: readonly LeadChange[];
  /** The revisions of the changed leads, by `keyOfChanged`. */
  readonly revisions: ReadonlyMap<string, number>;
}

/** Returns the key of a change's lead in a poll result. */
export const keyOfChanged = ({ lead }: LeadChange): string => `${lead.studioId} ${lead.id}`;

/** Polls the store for lead changes on behalf of all waiting consumers, so the cost does not depend on their number. */
export class LeadChangePoller {
  readonly #store: Pick<LeadChangeStore, 'listLeadChanges'>;
  /** The poll in flight, and the one that begins after it, which all callers meanwhile share. */
  #inFlight: Promise<unknown> = Promise.resolve();
  #following: Promise<PollResult> | undefined;
  #intervalMs = MIN_INTERVAL_MS;
  #last: PollResult = { changes: [], revisions: new Map() };
  /** The next poll, which all waiting consumers share. */
  #next: { readonly result: Promise<PollResult>; readonly hurry: AbortController } | undefined;

  constructor(store: Pick<LeadChangeStore, 'listLeadChanges'>) {
    this.#store = store;
  }

  /** Returns the leads with the oldest unacknowledged changes, from a poll that begins after the call. */
  now(): Promise<PollResult> {
    this.#following ??= this.#inFlight
      .catch(() => {})
      .then(() => {
        this.#following = undefined;
        const poll = this.#poll();
        this.#inFlight = poll;
        return poll;
      });
    return this.#following;
  }

  async #poll(): Promise<PollResult> {
    const began = performance.now();
    const found = await this.#store.listLeadChanges(MAX_LEADS_PER_POLL);
    assert(found.length <= MAX_LEADS_PER_POLL, 'page_within_limit');
    const pollMs = performance.now() - began;
    this.#intervalMs = Math.min(Math.max(MIN_INTERVAL_MS, INTERVAL_PER_POLL * pollMs), MAX_INTERVAL_MS);
    if (!isSame(found, this.#last)) {
      this.#last = {
        changes: found,
        revisions: new Map(found.map((change) => [keyOfChanged(change), change.revision])),
      };
    }
    return this.#last;
  }

  /** Does the same after the interval. */
  next(): Promise<PollResult> {
    this.#next ??= this.#afterInterval();
    return this.#next.result;
  }

  /** Ends the interval early: the changes are known to differ from the last poll. */
  hurry(): void {
    this.#next?.hurry.abort();
  }

  #afterInterval() {
    const hurry = new AbortController();
    const interval = sleep(this.#intervalMs, undefined, { signal: hurry.signal }).catch(() => {});
    const result = interval.then(() => {
      this.#next = undefined;
      return this.now();
    });
    // All consumers may have stopped waiting.
    result.catch(() => {});
    return { result, hurry };
  }
}

const isSame = (found: readonly LeadChange[], { changes, revisions }: PollResult): boolean =>
  found.length === changes.length && found.every((change) => revisions.get(keyOfChanged(change)) === change.revision);

/** The maximum wait of a pull; milliseconds. */
export const MAX_WAIT_MS = 20_000;

/** A request for changes, not yet checked. */
export interface PullLeadChangesQuery {
  /** 0: the default number. Above the maximum: the maximum. */
  readonly max: number;
  /** How long to wait if there are no changes; milliseconds. NaN: invalid. */
  readonly waitMs: number;
}

/**
 * Returns leads with unacknowledged changes, oldest change first. Waits if there are none.
 *
 * @param ending aborted to end the wait
 * @throws Refusal INVALID_REQUEST
 */
export async function pullLeadChanges(
  poller: LeadChangePoller,
  { max, waitMs }: PullLeadChangesQuery,
  ending: AbortSignal,
): Promise<readonly LeadChange[]> {
  const faults = new Faults();
  faults.note('max', max < 0 ? 'must not be negative' : undefined);
  faults.note('wait', waitMs >= 0 ? undefined : 'must be a duration that is not negative');
  faults.refuseIfAny();
  const end = AbortSignal.any([ending, AbortSignal.timeout(Math.min(waitMs, MAX_WAIT_MS))]);
  const ended = new Promise<undefined>((resolve) => {
    end.addEventListener('abort', () => resolve(undefined), { once: true });
  });
  let poll: PollResult | undefined = await poller.now();
  while (poll?.changes.length === 0 && !end.aborted) poll = await Promise.race([poller.next(), ended]);
  const [first = []] = changeParts(poll?.changes ?? [], pageLimit(max));
  return first;
}

const changeParts = (changes: readonly LeadChange[], most: number) =>
  partsOf(changes, most, ({ lead }) => ('enquiries' in lead ? lead.enquiries : undefined));

/** The maximum number of changes in a message. */
const MAX_CHANGES_PER_MESSAGE = 100;

/**
 * Yields changes as they happen, each state of a lead once. It yields no further leads while MAX_LEADS_PER_POLL of them
 * are unacknowledged, so a consumer that acknowledges nothing does not increase memory use.
 *
 * @param ending aborted to end the generator
 */
export async function* watchLeadChanges(
  poller: LeadChangePoller,
  ending: AbortSignal,
): AsyncGenerator<readonly LeadChange[]> {
  let sent: PollResult | undefined;
  for (let poll = await poller.now(); !ending.aborted; poll = await poller.next()) {
    // Most polls find no change. Comparing by identity keeps them free of cost with many watchers.
    if (poll === sent) continue;
    const revisions = sent?.revisions;
    const fresh = poll.changes.filter((change) => revisions?.get(keyOfChanged(change)) !== change.revision);
    // Leads that this poll does not contain were acknowledged.
    sent = poll;
    yield* changeParts(fresh, MAX_CHANGES_PER_MESSAGE);
  }
}

/**
 * Acknowledges lead changes that a consumer has processed. A lead that has changed since keeps its newer changes
 * unacknowledged.
 *
 * @returns the number of leads whose last unacknowledged changes this call acknowledged
 * @throws Refusal INVALID_REQUEST
 */
export async function acknowledgeLeadChanges(
  { store }: Reading,
  poller: Pick<LeadChangePoller, 'hurry'>,
  acknowledgements: readonly Acknowledgement[],
): Promise<number> {
  const faults = new Faults();
  if (acknowledgements.length > MAX_ACKNOWLEDGEMENTS) {
    faults.note('acknowledgements', `must have at most ${MAX_ACKNOWLEDGEMENTS} elements`);
  }
  for (const [index, { studioId, leadId, revision }] of acknowledgements.slice(0, MAX_ACKNOWLEDGEMENTS).entries()) {
    const field = `acknowledgements[${index}]`;
    faults.note(`${field}.studioId`, crmIdFault(studioId));
    faults.note(`${field}.leadId`, uuidFault(leadId));
    if (!Number.isSafeInteger(revision) || revision < 0) faults.note(`${field}.revision`, 'must be that of a change');
  }
  faults.refuseIfAny();
  const acknowledged = await store.acknowledgeLeadChanges(
    acknowledgements.map((each) => ({ ...each, leadId: each.leadId.toLowerCase() })),
  );
  assert(acknowledged <= acknowledgements.length, 'acknowledged_at_most_named');
  if (acknowledged > 0) poller.hurry();
  return acknowledged;
}

/** The maximum number of leads that a call marks. */
const MAX_LEADS_PER_CALL = 500;

export interface ResentPart {
  /** The number of leads that were marked. */
  readonly leadCount: number;
  /** The number of leads whose records cannot be marked. */
  readonly skippedCount: number;
  /** Of the next part; empty: this was the last. */
  readonly nextPageToken: string;
}

/**
 * Marks a part of a studio's leads as changed, so that the change feed sends them again.
 *
 * @throws Refusal INVALID_REQUEST
 */
export async function resendLeads(
  { store, clock }: Changing,
  { studioId, pageToken }: { readonly studioId: string; readonly pageToken: string },
): Promise<ResentPart> {
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  const after = startOfPage('resent', studioId, { pageSize: 0, pageToken }, faults);
  faults.refuseIfAny();
  const { leads, skipped, next } = await store.resendLeads(studioId, after, MAX_LEADS_PER_CALL, clock());
  return { leadCount: leads, skippedCount: skipped, nextPageToken: tokenAfter('resent', studioId, next) };
}
