import { setTimeout as sleep } from 'node:timers/promises';
import { assert } from '../../common/invariants.ts';
import type { LeadChange } from '../domain/lead-change.ts';
import type { LeadChangeStore } from '../store/store.ts';

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
