import { setTimeout as sleep } from 'node:timers/promises';
import { BY_RETENTION } from '../domain/audit.ts';
import type { Lead, LeadStage } from '../domain/lead.ts';
import { Faults } from '../domain/refusal.ts';
import { type ExpiredLeads, expiredLeads, firstErasure, lastKeptErasure, latestProof } from '../domain/retention.ts';
import { retentionDaysFault, type Studio } from '../domain/studio.ts';
import { StoreUnavailable } from '../store/port/faults.ts';
import type { EraseLeadOutcome } from '../store/port/lead-erasure.ts';
import { MAX_COUNTED } from './consumers.ts';
import type { Changing, Reading } from './dependencies.ts';
import { forgetOldRequests } from './request-log.ts';
import { RetentionTurns } from './retention-turns.ts';
import { everyStudio, existingStudio } from './studios.ts';

const MAX_LEADS_PER_TURN = 500;

/** The pace of all cores of a deployment together; milliseconds but for the leads. */
const PACE = {
  /** How often a core looks whether it is its turn. */
  lookMs: 60_000,
  /** For how long nobody must have begun a turn before one begins, and how long it lasts at most. */
  idleMs: 50_000,
  turnMs: 50_000,
  leadsPerTurn: MAX_LEADS_PER_TURN,
  /** Between two leads, in which others write. */
  restMs: 100,
  /** How often all studios are read. A studio is looked through as often. */
  listMs: 3_600_000,
};

/** The number of leads for which a studio's retention is read once: what it was changed to counts from the next ones on. */
const LEADS_PER_PAGE = 10;

/**
 * The most leads of a stage among which a page is looked for, unless more have changed within an hour: some engines sort all
 * that a query matches.
 */
const LEADS_PER_RANGE = 1000;
const MIN_RANGE_MS = 3_600_000;

/** The number of leads of a studio that has ended which are examined at a time. */
const LEADS_PER_REMOVAL = 100;

/** Where to go on in a studio. */
type Place = KeptPlace | { readonly removedTo: string | null };

interface KeptPlace {
  /** The leads that changed before are done. */
  readonly from: Date;
  /** The end of the range that is looked through, behind a position of it; null: its range is yet to be found. */
  readonly within: { readonly after: string; readonly to: Date } | null;
}

const START: KeptPlace = { from: new Date(0), within: null };

/** What became of a lead that is not kept any more; `unreadable`: it was passed over; `deleted`: it was erased long ago. */
export type RetentionOutcome = EraseLeadOutcome['kind'] | 'unreadable' | 'failed' | 'deleted';

/** Must not throw. */
export interface RetentionObserver {
  /** Called with the time that retention goes by; null: no studio has ever had one. */
  time(time: Date | null): void;
  passed(outcome: RetentionOutcome, leads: number): void;
  /** Called after a turn for each studio of which it has erased leads. */
  erased(studioId: string, leads: number): void;
  failed(error: unknown): void;
}

/**
 * Erases the closed leads that no studio's retention keeps, and deletes what is left of those of studios that have ended, and old entries of
 * the log of requests, until the signal aborts. Of any number of processes one does so at a time, at PACE; another follows it once it ends.
 */
export async function retainLeads(
  deps: Changing,
  observer: RetentionObserver,
  signal: AbortSignal,
  pace = PACE,
): Promise<void> {
  const turns = new RetentionTurns(deps, pace.idleMs);
  const rest = (ms: number) => sleep(ms, undefined, { signal, ref: false }).catch(() => {});
  const studios = new StudiosToRetain(deps, observer);
  const { waiting } = studios;
  for (;;) {
    await rest(pace.lookMs);
    if (signal.aborted) return;
    try {
      await studios.listEvery(pace.listMs, signal);
      if (signal.aborted) return;
      const time = await turns.next(studios.firstTime);
      observer.time(turns.time);
      if (time) await take(time);
    } catch (error) {
      observer.failed(error);
    }
  }

  /** Takes some leads of each studio in turn, so that none waits for another that has many. */
  async function take(time: Date): Promise<void> {
    const until = performance.now() + pace.turnMs;
    const erased = new Map<string, number>();
    try {
      for (let left = pace.leadsPerTurn; left > 0 && performance.now() < until && !signal.aborted; ) {
        const [first] = waiting;
        if (!first) break;
        const [studioId, place] = first;
        // Whatever fails there must not stop the others.
        waiting.delete(studioId);
        if ('removedTo' in place) {
          await removeAfter(studioId, place.removedTo, time);
          // One write, as a page of erasures at least.
          left -= LEADS_PER_PAGE;
          continue;
        }
        const page = await expired(deps, studioId, place, time);
        observer.passed('unreadable', page.skipped);
        for (const lead of page.records) {
          const outcome = await erase(deps, lead, observer);
          observer.passed(outcome, 1);
          if (outcome === 'erased') erased.set(studioId, (erased.get(studioId) ?? 0) + 1);
          await rest(pace.restMs);
          if (signal.aborted) return;
        }
        left -= page.records.length;
        if (page.next) waiting.set(studioId, page.next);
      }
    } finally {
      for (const [studioId, leads] of erased) observer.erased(studioId, leads);
    }
  }

  async function removeAfter(studioId: string, after: string | null, time: Date): Promise<void> {
    try {
      const { deleted, next } = await removeErased(deps, studioId, after, time);
      observer.passed('deleted', deleted);
      if (next !== null) waiting.set(studioId, { removedTo: next });
    } catch (error) {
      // The right to delete may be missing.
      observer.failed(error);
    }
    await rest(pace.restMs);
  }
}

/** The studios of which leads may go, as they are listed. */
class StudiosToRetain {
  /** Those to look through. */
  readonly waiting = new Map<string, Place>();
  readonly #deps: Changing;
  readonly #observer: RetentionObserver;
  #listedAt = Number.NEGATIVE_INFINITY;
  #firstTime: Date | null = null;
  /** In how many lists, one after the other, a studio could not be read. */
  #failedLists = 0;

  constructor(deps: Changing, observer: RetentionObserver) {
    this.#deps = deps;
    this.#observer = observer;
  }

  /** The time to begin with; null: none yet. One that is too early never catches up, so a studio that fails gets a second chance. */
  get firstTime(): Date | null {
    return this.#failedLists === 1 ? null : this.#firstTime;
  }

  /** Lists them again, if that is so long ago. */
  async listEvery(ms: number, signal: AbortSignal): Promise<void> {
    if (performance.now() - this.#listedAt < ms) return;
    let hasFailed = false;
    for await (const studio of everyStudio(this.#deps)) {
      if (signal.aborted) return;
      await forgetOldRequests(this.#deps, studio.id).catch(this.#observer.failed);
      // Whatever fails there must not stop the others.
      await this.#note(studio).catch((error) => {
        this.#observer.failed(error);
        hasFailed = true;
      });
    }
    this.#failedLists = hasFailed ? this.#failedLists + 1 : 0;
    this.#listedAt = performance.now();
  }

  async #note({ id, retention, status }: Studio): Promise<void> {
    const { store, clock } = this.#deps;
    const { leads, next } = status === 'ended' ? await store.walkErasedLeads(id, null, 1) : NO_LEADS;
    if (!retention && leads.length === 0 && next === null) return;
    if (!this.waiting.has(id)) this.waiting.set(id, retention ? START : { removedTo: null });
    // Not when a lead was erased: that may be years ago, or unreadable.
    const since = retention?.since ?? (await findStudioEnd(this.#deps, id));
    const isLatest = since && since <= latestProof(clock()) && !(this.#firstTime && since < this.#firstTime);
    if (isLatest) this.#firstTime = since;
  }
}

const NO_LEADS = { leads: [], next: null } as const;

/** Returns when a studio has ended, or if that is not known, when it had its latest event; undefined: neither is. */
async function findStudioEnd({ store }: Reading, studioId: string): Promise<Date | undefined> {
  const events = await store.listAuditEvents(studioId, null);
  return (events.find(({ to, action }) => to === 'ended' && action === 'studio-status-changed') ?? events[0])?.time;
}

/** Deletes what was left of some leads of a studio that has ended; returns how many, and where to go on; null: there are no more to delete now. */
async function removeErased({ store }: Changing, studioId: string, after: string | null, time: Date) {
  const isOver = (await store.findStudio(studioId))?.status === 'ended';
  const { leads, next } = isOver ? await store.walkErasedLeads(studioId, after, LEADS_PER_REMOVAL) : NO_LEADS;
  const last = lastKeptErasure(time);
  const ids = leads.filter(({ erasedAt }) => erasedAt <= last).map(({ id }) => id);
  if (ids.length > 0) return { deleted: await store.deleteErasedLeads(studioId, ids, last), next };
  // They were erased in this order, so those behind are kept as well.
  return { deleted: 0, next: leads.length > 0 ? null : next };
}

/** Returns some leads of a studio that are not kept any more, and where to go on; null: there are no more. */
async function expired({ store }: Reading, studioId: string, { from, within }: KeptPlace, time: Date) {
  const { retention } = (await store.findStudio(studioId)) ?? {};
  if (!retention || firstErasure(retention) > time) return { records: [], next: null, skipped: 0 };
  const all = expiredLeads(retention.days, time, from);
  const { end } = all.updated;
  const to = within
    ? new Date(Math.min(within.to.getTime(), end.getTime()))
    : await endOfRange({ store }, studioId, all);
  const filter = { ...all, updated: { start: from, end: to } };
  const page = await store.walkLeads(studioId, within?.after ?? null, LEADS_PER_PAGE, filter);
  const rest = to < end ? { from: to, within: null } : null;
  return { ...page, next: page.next === null ? rest : { from, within: { after: page.next, to } } };
}

async function endOfRange(
  { store }: Reading,
  studioId: string,
  { updated: { start, end }, ...leads }: ExpiredLeads,
): Promise<Date> {
  for (let to = end; ; to = new Date((start.getTime() + to.getTime()) / 2)) {
    const isTooMany = async (stage: LeadStage) =>
      (await store.measureStage(studioId, stage, { ...leads, updated: { start, end: to } }, LEADS_PER_RANGE)) ===
      LEADS_PER_RANGE;
    const areTooMany = (await Promise.all(leads.stages.map(isTooMany))).includes(true);
    if (!areTooMany || to.getTime() - start.getTime() <= MIN_RANGE_MS) return to;
  }
}

async function erase(
  { store, clock }: Changing,
  { studioId, id: leadId, updatedAt }: Lead,
  observer: RetentionObserver,
): Promise<RetentionOutcome> {
  const which = { studioId, leadId, expectedUpdatedAt: updatedAt };
  try {
    return (await store.eraseLead({ ...which, ...BY_RETENTION, now: clock() })).kind;
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    observer.failed(error);
    return 'failed';
  }
}

export interface CountedExpiry {
  readonly wouldErase: number;
  /** Whether there may be more. */
  readonly isLowerBound: boolean;
  /** They have not changed since. */
  readonly unchangedSince: Date;
}

/**
 * Counts the leads that a retention would erase now. Of each stage it counts MAX_COUNTED at most.
 *
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND
 */
export async function countExpiredLeads(
  { store, clock }: Changing,
  { studioId, days }: { readonly studioId: string; readonly days: number },
): Promise<CountedExpiry> {
  const faults = new Faults();
  faults.note('days', retentionDaysFault(days));
  await existingStudio(store, studioId, faults);
  const filter = expiredLeads(days, clock());
  const counts = await Promise.all(
    filter.stages.map((stage) => store.measureStage(studioId, stage, filter, MAX_COUNTED)),
  );
  return {
    wouldErase: counts.reduce((sum, count) => sum + count),
    isLowerBound: counts.includes(MAX_COUNTED),
    unchangedSince: filter.updated.end,
  };
}
