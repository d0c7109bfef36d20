import { setTimeout as sleep } from 'node:timers/promises';
import { CoalescedReads } from '../../common/coalesced-reads.ts';
import type { LeadChange } from '../domain/lead-change.ts';
import type { LeadChangeStore } from '../store/store.ts';

/** How many leads with unacknowledged changes one look finds at most; those behind them wait for these to be acknowledged. */
export const MAX_LEADS_PER_POLL = 200;

/** The pause between looks for those who wait; milliseconds. It decides how soon a consumer has what another process wrote. */
const PAUSE_MS = 50;

/** Looks take at most a fifth of the time, however slow they are, up to the longest pause; milliseconds. */
const PAUSE_OF_LOOK = 4;
const MAX_PAUSE_MS = 1000;

/** What a look found: the same for all who share it, and as long as nothing else is found. */
export interface PollResult {
  readonly changes: readonly LeadChange[];
  /** By the leads' names. */
  readonly revisions: ReadonlyMap<string, number>;
}

/** A lead's name in a look. */
export const nameOfChanged = ({ lead }: LeadChange): string => `${lead.studioId} ${lead.id}`;

/** Looks for changes on behalf of all who wait for them: however many they are, the database is asked once. */
export class LeadChangePoller {
  readonly #store: Pick<LeadChangeStore, 'listLeadChanges'>;
  readonly #reads = new CoalescedReads();
  #pauseMs = PAUSE_MS;
  #last: PollResult = { changes: [], revisions: new Map() };
  /** The look that those share who wait for the end of the pause. */
  #next: { readonly found: Promise<PollResult>; readonly hurry: AbortController } | undefined;

  constructor(store: Pick<LeadChangeStore, 'listLeadChanges'>) {
    this.#store = store;
  }

  /** The leads whose changes began first, as a look finds them that begins after the call. */
  now(): Promise<PollResult> {
    return this.#reads.read('changes', async () => {
      const began = performance.now();
      const found = await this.#store.listLeadChanges(MAX_LEADS_PER_POLL);
      this.#pauseMs = Math.min(Math.max(PAUSE_MS, PAUSE_OF_LOOK * (performance.now() - began)), MAX_PAUSE_MS);
      if (!isSame(found, this.#last)) {
        this.#last = {
          changes: found,
          revisions: new Map(found.map((change) => [nameOfChanged(change), change.revision])),
        };
      }
      return this.#last;
    });
  }

  /** The same, after a pause. */
  next(): Promise<PollResult> {
    this.#next ??= this.#afterPause();
    return this.#next.found;
  }

  /** Ends the pause: something is known to be otherwise than at the last look. */
  hurry(): void {
    this.#next?.hurry.abort();
  }

  #afterPause() {
    const hurry = new AbortController();
    const pause = sleep(this.#pauseMs, undefined, { signal: hurry.signal }).catch(() => {});
    const found = pause.then(() => {
      this.#next = undefined;
      return this.now();
    });
    // Whoever waits for it may have left.
    found.catch(() => {});
    return { found, hurry };
  }
}

const isSame = (found: readonly LeadChange[], { changes, revisions }: PollResult): boolean =>
  found.length === changes.length && found.every((change) => revisions.get(nameOfChanged(change)) === change.revision);
