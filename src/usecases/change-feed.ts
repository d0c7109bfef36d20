import { setTimeout as sleep } from 'node:timers/promises';
import { inTime } from '../../common/in-time.ts';
import { assert } from '../../common/invariants.ts';
import { oneAtATime } from '../../common/one-at-a-time.ts';
import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import { OF_DEPLOYMENT, type Requester } from '../domain/audit.ts';
import { type Consumer, DEFAULT_CONSUMER } from '../domain/consumer.ts';
import { idBeforePage } from '../domain/cursor.ts';
import {
  type Acknowledgement,
  type LeadChange,
  MAX_ACKNOWLEDGEMENTS,
  type StateCounts,
} from '../domain/lead-change.ts';
import { noteRangeFaults, type TimeRange } from '../domain/lead-filter.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import { hasStudio, listDeliveries, startBackfill } from './consumers.ts';
import type { Changing, Reading } from './dependencies.ts';
import { pageLimit } from './read-leads.ts';
import { MAX_LEADS_PER_CALL, noteLeadIds, requestedBy, splitIntoParts, startOfPage, tokenAfter } from './requests.ts';

/** The maximum number of leads in a poll. Later leads follow once these are acknowledged. */
export const MAX_LEADS_PER_POLL = 200;

/** The minimum interval between polls; milliseconds. It bounds the delay of changes that another process wrote. */
const MIN_INTERVAL_MS = 50;

/** The interval lasts 4 times as long as the poll took, up to a maximum; milliseconds. Polls of up to 250 ms take at most a fifth of the time. */
const INTERVAL_PER_POLL = 4;
const MAX_INTERVAL_MS = 1000;

/** The result of a poll. Successive polls return the same object until the changes differ. */
export interface PollResult {
  readonly changes: readonly LeadChange[];
  /** The version of each changed lead's entry, by `keyOfChanged`. */
  readonly versions: ReadonlyMap<string, string>;
}

/** Returns the key of a change's lead in a poll result. */
export const keyOfChanged = ({ lead }: LeadChange): string => `${lead.studioId} ${lead.id}`;

/** Polls the store for lead changes on behalf of all waiting callers, so its cost does not depend on their number. */
export class LeadChangePoller {
  readonly #list: (limit: number) => Promise<readonly LeadChange[]>;
  readonly #pollers: () => number;
  readonly #pollOnce = oneAtATime(() => this.#poll());
  #intervalMs = MIN_INTERVAL_MS;
  /** When it was last used; milliseconds of the process. */
  usedAt: number = performance.now();
  #last: PollResult = { changes: [], versions: new Map() };
  /** The next poll, which all waiting callers share. */
  #next: { readonly result: Promise<PollResult>; readonly hurry: AbortController } | undefined;

  /** @param pollers returns the number of pollers that share the time for polls */
  constructor(list: (limit: number) => Promise<readonly LeadChange[]>, pollers = () => 1) {
    this.#list = list;
    this.#pollers = pollers;
  }

  /** Returns the leads with the oldest unacknowledged changes, from a poll that begins after the call. */
  now(): Promise<PollResult> {
    this.usedAt = performance.now();
    return this.#pollOnce();
  }

  async #poll(): Promise<PollResult> {
    const began = performance.now();
    const found = await this.#list(MAX_LEADS_PER_POLL);
    assert(found.length <= MAX_LEADS_PER_POLL, 'page_within_limit');
    const pollMs = performance.now() - began;
    const pauseMs = INTERVAL_PER_POLL * this.#pollers() * pollMs;
    this.#intervalMs = Math.min(Math.max(MIN_INTERVAL_MS, pauseMs), MAX_INTERVAL_MS);
    if (!isSame(found, this.#last)) {
      this.#last = {
        changes: found,
        versions: new Map(found.map((change) => [keyOfChanged(change), toVersion(change)])),
      };
    }
    return this.#last;
  }

  next(): Promise<PollResult> {
    this.#next ??= this.#afterInterval();
    return this.#next.result;
  }

  /** Ends the interval early, when the changes are known to differ from the last poll. */
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
    // All callers may have stopped waiting.
    result.catch(() => {});
    return { result, hurry };
  }
}

/** How long after its last use a poller counts as in use; milliseconds. Longer than the maximum interval and a poll together. */
const USED_FOR_MS = 10_000;

/** How often a process removes deliveries of removed consumers (orphans); milliseconds. Late distributors may add some. */
const REMOVAL_INTERVAL_MS = 3_600_000;

export class LeadChangePollers {
  readonly #deps: Changing;
  /** When it next removes orphans; milliseconds of the process. */
  #removesAt = 0;
  readonly #pollers = new Map<Consumer['number'], LeadChangePoller>();

  constructor(deps: Changing) {
    this.#deps = deps;
  }

  /** Returns the pollers in use. */
  #inUse(): (readonly [number: number, poller: LeadChangePoller])[] {
    return [...this.#pollers].filter(([, { usedAt }]) => performance.now() - usedAt < USED_FOR_MS);
  }

  of({ number }: Consumer): LeadChangePoller {
    const known = this.#pollers.get(number);
    if (known) return known;
    // Other pollers may belong to removed consumers.
    const inUse = new Set(this.#inUse().map(([each]) => each));
    for (const each of this.#pollers.keys()) if (!inUse.has(each)) this.#pollers.delete(each);
    const poller = new LeadChangePoller(
      async (limit) => {
        await this.#removeOrphans();
        const found = await listDeliveries(this.#deps, number, limit);
        if (found) return found;
        this.#pollers.delete(number);
        throw new Refusal('CONSUMER_NOT_FOUND');
      },
      () => this.#inUse().length,
    );
    this.#pollers.set(number, poller);
    return poller;
  }

  async #removeOrphans(): Promise<void> {
    if (performance.now() < this.#removesAt) return;
    this.#removesAt = performance.now() + REMOVAL_INTERVAL_MS;
    // If the database role lacks the right to delete, the call that needs it reports that.
    if (await this.#deps.store.removeOrphans().catch(() => false)) this.#removesAt = 0;
  }
}

/** Includes the attempts, because a lead that was set aside is sent again at the same revision. */
const toVersion = ({ revision, since, attempts }: LeadChange): string => `${revision} ${since?.getTime()} ${attempts}`;

const isSame = (found: readonly LeadChange[], { changes, versions }: PollResult): boolean =>
  found.length === changes.length && found.every((change) => versions.get(keyOfChanged(change)) === toVersion(change));

/** The maximum wait of a pull; milliseconds. */
export const MAX_WAIT_MS = 20_000;

export interface SentChanges {
  readonly changes: readonly LeadChange[];
  /** Whether more leads may wait until some of the sent ones are acknowledged or set aside. */
  readonly heldBack: boolean;
}

const isFull = (changes: readonly LeadChange[]): boolean => changes.length === MAX_LEADS_PER_POLL;

export interface PullLeadChangesQuery {
  /** 0: the default number. Above the maximum: the maximum. */
  readonly max: number;
  /** How long to wait if there are no changes; milliseconds. NaN: invalid. */
  readonly waitMs: number;
}

/**
 * Returns leads with unacknowledged changes, oldest change first. Waits if there are none.
 *
 * @param ending ends the wait when it aborts
 * @throws Refusal INVALID_REQUEST
 */
export async function pullLeadChanges(
  poller: LeadChangePoller,
  { max, waitMs }: PullLeadChangesQuery,
  ending: AbortSignal,
): Promise<SentChanges> {
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
  const { changes } = poll ?? { changes: [] };
  const [first = []] = changeParts(changes, pageLimit(max));
  return { changes: first, heldBack: first.length < changes.length || isFull(changes) };
}

const changeParts = (changes: readonly LeadChange[], most: number) =>
  splitIntoParts(changes, most, ({ lead }) => ('enquiries' in lead ? lead.enquiries : undefined));

const MAX_CHANGES_PER_MESSAGE = 100;

/** The minimum heartbeat of a watch; milliseconds. As long as the maximum interval between polls. */
const MIN_HEARTBEAT_MS = 1000;

/** Checks a heartbeat; milliseconds. @throws Refusal INVALID_REQUEST */
export function checkedHeartbeat(heartbeatMs: number): number {
  const faults = new Faults();
  if (!(heartbeatMs >= MIN_HEARTBEAT_MS)) faults.note('heartbeat', 'must be at least a second');
  faults.refuseIfAny();
  return heartbeatMs;
}

/**
 * Yields changes as they happen, each state of a lead once. A state is yielded again if older leads pushed it out of a
 * full poll. While MAX_LEADS_PER_POLL leads are unacknowledged, no others are yielded, so a consumer that acknowledges
 * nothing does not increase memory use.
 *
 * @param ending ends the generator when it aborts
 * @param heartbeatMs yields an empty list after this long without changes; milliseconds
 */
export async function* watchLeadChanges(
  poller: LeadChangePoller,
  ending: AbortSignal,
  heartbeatMs = Number.POSITIVE_INFINITY,
): AsyncGenerator<SentChanges> {
  let sent: PollResult | undefined;
  let yieldedAt = performance.now();
  for (let polling = poller.now(); ; ) {
    // A poll takes long while it distributes changes of many other leads.
    const poll = await inTime(polling, Math.max(yieldedAt + heartbeatMs - performance.now(), MIN_HEARTBEAT_MS));
    if (ending.aborted) return;
    const heldBack = isFull((poll ?? sent)?.changes ?? []);
    // Most polls find no change. Comparing by identity keeps them cheap with many watchers.
    if (poll && poll !== sent) {
      const versions = sent?.versions;
      const fresh = poll.changes.filter((change) => versions?.get(keyOfChanged(change)) !== toVersion(change));
      // Leads that this poll does not contain were acknowledged.
      sent = poll;
      for (const changes of changeParts(fresh, MAX_CHANGES_PER_MESSAGE)) {
        yield { changes, heldBack };
        yieldedAt = performance.now();
      }
    }
    if (performance.now() - yieldedAt >= heartbeatMs) {
      yield { changes: [], heldBack };
      yieldedAt = performance.now();
    }
    if (poll) polling = poller.next();
  }
}

/**
 * Acknowledges lead changes that a consumer has processed. A lead that has changed since keeps its newer changes
 * unacknowledged.
 *
 * @returns `applied`: the leads whose last unacknowledged changes this call acknowledged
 * @throws Refusal INVALID_REQUEST
 */
export async function acknowledgeLeadChanges(
  { store }: Changing,
  poller: LeadChangePoller,
  acknowledgements: readonly Acknowledgement[],
  { number }: Consumer,
): Promise<StateCounts> {
  const faults = new Faults();
  noteStateFaults(faults, 'acknowledgements', acknowledgements);
  faults.refuseIfAny();
  const acknowledged = await store.acknowledgeDeliveries(number, acknowledgements.map(asStored));
  assert(acknowledged.applied <= acknowledgements.length, 'acknowledged_at_most_named');
  if (acknowledged.applied > 0) poller.hurry();
  return acknowledged;
}

/** Notes the faults of states of leads in a request. @param field the request's field @param check returns faults of further fields */
export const noteStateFaults = <Named extends Acknowledgement>(
  faults: Faults,
  field: string,
  named: readonly Named[],
  check: (each: Named) => Readonly<Record<string, string | undefined>> = () => ({}),
): void =>
  faults.noteEach(field, named, MAX_ACKNOWLEDGEMENTS, (each) => ({
    studioId: crmIdFault(each.studioId),
    leadId: uuidFault(each.leadId),
    revision:
      Number.isSafeInteger(each.revision) && each.revision >= 0 ? undefined : 'must be the revision of a change',
    ...check(each),
  }));

/** Returns a state of a lead in its stored form. */
export const asStored = <Named extends Acknowledgement>(each: Named): Named => ({
  ...each,
  leadId: each.leadId.toLowerCase(),
});

export interface ResentPart {
  /** The number of leads that were resent. */
  readonly leadCount: number;
  /** The number of leads whose records cannot be resent. */
  readonly skippedCount: number;
  /** The token of the next part; empty: this was the last. */
  readonly nextPageToken: string;
}

export interface ResendCommand extends Requester {
  /** Empty with `allStudios`. */
  readonly studioId: string;
  readonly pageToken: string;
  /** Leads of the studio; empty: all. */
  readonly leadIds?: readonly string[];
  readonly allStudios?: boolean;
  /** Only leads that changed in this range; undefined: all. */
  readonly updated?: TimeRange | undefined;
  /** The minimum of the new revisions; no RPC can set it. */
  readonly lowestRevision?: number | undefined;
}

/**
 * Resends leads of a studio through the change feed: some by id, or page by page all or those that changed in a range.
 * For a single consumer, all leads become a backfill.
 *
 * @param consumer undefined: all
 * @throws Refusal INVALID_REQUEST
 */
export async function resendLeads(
  { store, clock }: Changing,
  { studioId, pageToken, leadIds = [], allStudios = false, updated, lowestRevision, ...by }: ResendCommand,
  consumer?: Consumer,
): Promise<ResentPart> {
  const faults = new Faults();
  if (!allStudios) faults.note('studioId', crmIdFault(studioId));
  else if (studioId !== '' || leadIds.length > 0 || updated || !consumer)
    faults.note('allStudios', 'must be with a consumer, and without a studio, leads and updateTime');
  if (consumer && !allStudios && !(await hasStudio({ store }, consumer, studioId)))
    faults.note('studioId', 'must be one of the consumer');
  // The default consumer is not stored, so neither is a backfill for it.
  if (consumer === DEFAULT_CONSUMER && leadIds.length === 0 && !updated)
    faults.note('consumer', `must not be ${consumer.name} without leads or updateTime`);
  noteLeadIds(faults, leadIds);
  if (updated) noteRangeFaults(faults, 'updateTime', updated);
  if (updated && leadIds.length > 0) faults.note('updateTime', 'must be absent with leads');
  const scope = updated ? `${studioId}\n${JSON.stringify(updated)}` : studioId;
  const after = startOfPage(faults, { pageSize: 0, pageToken }, (token) => idBeforePage('resent', scope, token));
  if (((consumer && !updated) || leadIds.length > 0) && pageToken !== '')
    faults.note('pageToken', 'must be empty with leads, or with a consumer and without updateTime');
  faults.refuseIfAny();
  // The first page records the event for all pages.
  if (pageToken === '') {
    const act = { action: 'leads-resent', to: consumer?.name ?? null } as const;
    await store.recordAct(allStudios ? OF_DEPLOYMENT : studioId, act, requestedBy(by, clock));
  }
  const nothing = { leadCount: 0, skippedCount: 0, nextPageToken: '' };
  if (leadIds.length > 0) {
    const some = { studioId, leadIds: [...new Set(leadIds.map((leadId) => leadId.toLowerCase()))] };
    const { leads, skipped } = await store.resendLeads(some, clock(), { consumer: consumer?.number });
    return { ...nothing, leadCount: leads, skippedCount: skipped };
  }
  if (consumer && !updated) {
    await startBackfill(store, consumer, allStudios ? null : studioId);
    return nothing;
  }
  const part = { studioId, after, limit: MAX_LEADS_PER_CALL, updated };
  const options = { consumer: consumer?.number, lowest: lowestRevision };
  const { leads, skipped, next } = await store.resendLeads(part, clock(), options);
  return { leadCount: leads, skippedCount: skipped, nextPageToken: tokenAfter('resent', scope, next) };
}

/**
 * Returns those of the given ids of which the studio has no lead. A consumer thereby finds what its copy has and a restore lost.
 *
 * @throws Refusal INVALID_REQUEST
 */
export async function findMissingLeads(
  { store }: Reading,
  { studioId, leadIds }: { readonly studioId: string; readonly leadIds: readonly string[] },
): Promise<readonly string[]> {
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  noteLeadIds(faults, leadIds);
  faults.refuseIfAny();
  return store.findMissingLeads(studioId, [...new Set(leadIds.map((leadId) => leadId.toLowerCase()))]);
}
