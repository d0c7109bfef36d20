import { setTimeout as sleep } from 'node:timers/promises';
import { inTime } from '../../common/in-time.ts';
import { assert } from '../../common/invariants.ts';
import { oneAtATime } from '../../common/one-at-a-time.ts';
import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import { OF_DEPLOYMENT, type Requester } from '../domain/audit.ts';
import { type Consumer, DEFAULT_CONSUMER } from '../domain/consumer.ts';
import { type Acknowledgement, type LeadChange, MAX_ACKNOWLEDGEMENTS, type Settled } from '../domain/lead-change.ts';
import { noteRangeFaults, type TimeRange } from '../domain/lead-filter.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import { hasStudio, listDeliveries, sendAgain } from './consumers.ts';
import type { Changing, Reading } from './dependencies.ts';
import { pageLimit } from './read-leads.ts';
import { MAX_LEADS_PER_CALL, noteLeadIds, requestedBy, splitIntoParts, startOfPage, tokenAfter } from './requests.ts';

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
  /** What tells entries of the changed leads apart, by `keyOfChanged`. */
  readonly versions: ReadonlyMap<string, string>;
}

/** Returns the key of a change's lead in a poll result. */
export const keyOfChanged = ({ lead }: LeadChange): string => `${lead.studioId} ${lead.id}`;

/** Polls the store for lead changes on behalf of all who wait for them, so the cost does not depend on their number. */
export class LeadChangePoller {
  readonly #list: (limit: number) => Promise<readonly LeadChange[]>;
  readonly #pollers: () => number;
  readonly #pollOnce = oneAtATime(() => this.#poll());
  #intervalMs = MIN_INTERVAL_MS;
  /** When it was last asked to poll; milliseconds of the process. */
  usedAt: number = performance.now();
  #last: PollResult = { changes: [], versions: new Map() };
  /** The next poll, which all waiting consumers share. */
  #next: { readonly result: Promise<PollResult>; readonly hurry: AbortController } | undefined;

  /** @param pollers how many share the time that polls may use */
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

/** How long after its last poll a poller counts; milliseconds. More than any interval between polls, and a poll. */
const USED_FOR_MS = 10_000;

/** How often a process looks for what removed consumers have left; milliseconds. Late distributors may leave some, too. */
const REMOVAL_INTERVAL_MS = 3_600_000;

export class LeadChangePollers {
  readonly #deps: Changing;
  /** When it next looks for these; milliseconds of the process. */
  #removesAt = 0;
  readonly #pollers = new Map<Consumer['number'], LeadChangePoller>();

  constructor(deps: Changing) {
    this.#deps = deps;
  }

  /** Those for which somebody has polled lately. */
  #polling(): (readonly [number: number, poller: LeadChangePoller])[] {
    return [...this.#pollers].filter(([, { usedAt }]) => performance.now() - usedAt < USED_FOR_MS);
  }

  of({ number }: Pick<Consumer, 'number'>): LeadChangePoller {
    const known = this.#pollers.get(number);
    if (known) return known;
    // Others may be those of consumers that were removed.
    const polling = new Set(this.#polling().map(([each]) => each));
    for (const each of this.#pollers.keys()) if (!polling.has(each)) this.#pollers.delete(each);
    const poller = new LeadChangePoller(
      async (limit) => {
        await this.#removeOrphans();
        const found = await listDeliveries(this.#deps, number, limit);
        if (found) return found;
        this.#pollers.delete(number);
        throw new Refusal('CONSUMER_NOT_FOUND');
      },
      () => this.#polling().length,
    );
    this.#pollers.set(number, poller);
    return poller;
  }

  async #removeOrphans(): Promise<void> {
    if (performance.now() < this.#removesAt) return;
    this.#removesAt = performance.now() + REMOVAL_INTERVAL_MS;
    // A role that may not is refused by what needs it.
    if (await this.#deps.store.removeOrphans().catch(() => false)) this.#removesAt = 0;
  }
}

/** A lead that was set aside comes again at the same revision. */
const toVersion = ({ revision, since, attempts }: LeadChange): string => `${revision} ${since?.getTime()} ${attempts}`;

const isSame = (found: readonly LeadChange[], { changes, versions }: PollResult): boolean =>
  found.length === changes.length && found.every((change) => versions.get(keyOfChanged(change)) === toVersion(change));

/** The maximum wait of a pull; milliseconds. */
export const MAX_WAIT_MS = 20_000;

export interface SentChanges {
  readonly changes: readonly LeadChange[];
  /** Whether more may wait that are not sent before some of those that were sent are acknowledged or set aside. */
  readonly heldBack: boolean;
}

const isFull = ({ changes }: Pick<PollResult, 'changes'>): boolean => changes.length === MAX_LEADS_PER_POLL;

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
  return { changes: first, heldBack: first.length < changes.length || isFull({ changes }) };
}

const changeParts = (changes: readonly LeadChange[], most: number) =>
  splitIntoParts(changes, most, ({ lead }) => ('enquiries' in lead ? lead.enquiries : undefined));

/** The maximum number of changes in a message. */
const MAX_CHANGES_PER_MESSAGE = 100;

/** The shortest time after which a watch says that it goes on; milliseconds. Longer than the interval between polls. */
const MIN_HEARTBEAT_MS = 1000;

/** Checks a heartbeat; milliseconds. @throws Refusal INVALID_REQUEST */
export function checkedHeartbeat(heartbeatMs: number): number {
  const faults = new Faults();
  if (!(heartbeatMs >= MIN_HEARTBEAT_MS)) faults.note('heartbeat', 'must be at least a second');
  faults.refuseIfAny();
  return heartbeatMs;
}

/**
 * Yields changes as they happen, each state of a lead once, unless leads that wait longer have taken its place in a full
 * poll. It yields no further leads while MAX_LEADS_PER_POLL of them are unacknowledged, so a consumer that acknowledges
 * nothing does not increase memory use.
 *
 * @param ending aborted to end the generator
 * @param heartbeatMs yields no changes when nothing was yielded for so long; milliseconds
 */
export async function* watchLeadChanges(
  poller: LeadChangePoller,
  ending: AbortSignal,
  heartbeatMs = Number.POSITIVE_INFINITY,
): AsyncGenerator<SentChanges> {
  let sent: PollResult | undefined;
  let yieldedAt = performance.now();
  for (let polling = poller.now(); ; ) {
    // It takes long while changes of many others are distributed.
    const poll = await inTime(polling, Math.max(yieldedAt + heartbeatMs - performance.now(), MIN_HEARTBEAT_MS));
    if (ending.aborted) return;
    const heldBack = isFull(poll ?? sent ?? { changes: [] });
    // Most polls find no change. Comparing by identity keeps them free of cost with many watchers.
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
 * @returns `settled`: the leads whose last unacknowledged changes this call acknowledged
 * @throws Refusal INVALID_REQUEST
 */
export async function acknowledgeLeadChanges(
  { store }: Reading,
  poller: Pick<LeadChangePoller, 'hurry'>,
  acknowledgements: readonly Acknowledgement[],
  { number }: Pick<Consumer, 'number'>,
): Promise<Settled> {
  const faults = new Faults();
  noteNamed(faults, 'acknowledgements', acknowledgements);
  faults.refuseIfAny();
  const acknowledged = await store.acknowledgeDeliveries(number, acknowledgements.map(asStored));
  assert(acknowledged.settled <= acknowledgements.length, 'acknowledged_at_most_named');
  if (acknowledged.settled > 0) poller.hurry();
  return acknowledged;
}

/** Notes what is wrong with states of leads that a request names. @param field of the request @param check further fields of each */
export const noteNamed = <Named extends Acknowledgement>(
  faults: Faults,
  field: string,
  named: readonly Named[],
  check: (each: Named) => Readonly<Record<string, string | undefined>> = () => ({}),
): void =>
  faults.noteEach(field, named, MAX_ACKNOWLEDGEMENTS, (each) => ({
    studioId: crmIdFault(each.studioId),
    leadId: uuidFault(each.leadId),
    revision: Number.isSafeInteger(each.revision) && each.revision >= 0 ? undefined : 'must be that of a change',
    ...check(each),
  }));

/** Returns a state of a lead as it is stored. */
export const asStored = <Named extends Acknowledgement>(each: Named): Named => ({
  ...each,
  leadId: each.leadId.toLowerCase(),
});

export interface ResentPart {
  /** The number of leads that were marked. */
  readonly leadCount: number;
  /** The number of leads whose records cannot be marked. */
  readonly skippedCount: number;
  /** Of the next part; empty: this was the last. */
  readonly nextPageToken: string;
}

export interface ResendCommand extends Requester {
  /** Empty with `allStudios`. */
  readonly studioId: string;
  readonly pageToken: string;
  /** Of the studio; empty: all. */
  readonly leadIds?: readonly string[];
  readonly allStudios?: boolean;
  /** Only those that changed then; undefined: all. */
  readonly updated?: TimeRange | undefined;
  /** What their revisions are at least; never of a request. */
  readonly lowestRevision?: number | undefined;
}

/**
 * Marks leads of a studio as changed, so that the change feed sends them again: some, or a part of all, or of those that changed
 * in a range. For a consumer, such are sent to it, or it is to be sent all.
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
  // No backfill of it can be stored.
  if (consumer === DEFAULT_CONSUMER && leadIds.length === 0 && !updated)
    faults.note('consumer', `must not be ${consumer.name} without leads or updateTime`);
  noteLeadIds(faults, leadIds);
  if (updated) noteRangeFaults(faults, 'updateTime', updated);
  if (updated && leadIds.length > 0) faults.note('updateTime', 'must be absent with leads');
  const scope = updated ? `${studioId}\n${JSON.stringify(updated)}` : studioId;
  const after = startOfPage('resent', scope, { pageSize: 0, pageToken }, faults);
  if (((consumer && !updated) || leadIds.length > 0) && pageToken !== '')
    faults.note('pageToken', 'must be empty with leads, or with a consumer and without updateTime');
  faults.refuseIfAny();
  // The pages that follow belong to it.
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
    await sendAgain({ store }, consumer, allStudios ? null : studioId);
    return nothing;
  }
  const part = { studioId, after, limit: MAX_LEADS_PER_CALL, updated };
  const options = { consumer: consumer?.number, lowest: lowestRevision };
  const { leads, skipped, next } = await store.resendLeads(part, clock(), options);
  return { leadCount: leads, skippedCount: skipped, nextPageToken: tokenAfter('resent', scope, next) };
}

/**
 * Returns those of some ids with which a studio has no lead: of a copy of its leads, those that a restored database has lost.
 *
 * @throws Refusal INVALID_REQUEST
 */
export async function findMissingLeads(
  { store }: Reading,
  { studioId, leadIds }: Pick<ResendCommand, 'studioId'> & { readonly leadIds: readonly string[] },
): Promise<readonly string[]> {
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  noteLeadIds(faults, leadIds);
  faults.refuseIfAny();
  return store.findMissingLeads(studioId, [...new Set(leadIds.map((leadId) => leadId.toLowerCase()))]);
}
