import { setTimeout as sleep } from 'node:timers/promises';
import { BY_RETENTION } from '../domain/audit.ts';
import type { Lead, LeadStage } from '../domain/lead.ts';
import { Faults } from '../domain/refusal.ts';
import { type ExpiredLeads, expiredLeads, firstErasure, latestProof, tombstoneDeadline } from '../domain/retention.ts';
import { retentionDaysFault, type Studio } from '../domain/studio.ts';
import { StoreUnavailable } from '../store/port/faults.ts';
import type { EraseLeadOutcome } from '../store/port/lead-erasure.ts';
import { MAX_COUNTED } from './consumers.ts';
import type { Changing, Reading } from './dependencies.ts';
import { forgetOldRequests } from './request-log.ts';
import { RetentionLease } from './retention-lease.ts';
import { everyStudio, existingStudio } from './studios.ts';

const MAX_LEADS_PER_LEASE = 500;

/** The pace of all cores of a deployment together; milliseconds except for the leads. */
const PACE = {
  /** How often a core tries to take the lease. */
  lookMs: 60_000,
  /** How long the lease must have been idle before a core takes it, and how long a core then works at most. */
  idleMs: 50_000,
  leaseMs: 50_000,
  leadsPerLease: MAX_LEADS_PER_LEASE,
  /** The pause between two leads, for other writers. */
  restMs: 100,
  /** How often all studios are listed, and each one is searched. */
  listMs: 3_600_000,
};

/** The number of leads for which a studio's retention is read once. A change of retention takes effect after them. */
const LEADS_PER_PAGE = 10;

/**
 * The maximum number of leads of a stage in a searched range, unless more changed within a second. Some engines sort all
 * matches of a query.
 */
const LEADS_PER_RANGE = 1000;
const MIN_RANGE_MS = 1000;

/** The number of an ended studio's leads that are examined at a time. */
const LEADS_PER_REMOVAL = 100;

/** The position at which to continue in a studio. */
type RetentionPosition = RangePosition | { readonly removedTo: string | null };

interface RangePosition {
  /** Leads that changed before are done. */
  readonly from: Date;
  /** The end of the current range, and a position in it; null: the next range is not chosen yet. */
  readonly within: { readonly after: string; readonly to: Date } | null;
}

const START: RangePosition = { from: new Date(0), within: null };

/** The outcome for a lead whose retention has ended. `unreadable`: it was skipped. `deleted`: its tombstone was deleted. */
export type RetentionOutcome = EraseLeadOutcome['kind'] | 'unreadable' | 'failed' | 'deleted';

export interface RetentionMetrics {
  /** Called with the retention time; null: there is none yet. */
  time(time: Date | null): void;
  processed(outcome: RetentionOutcome, leads: number): void;
}

/** Must not throw. */
export interface RetentionObserver extends RetentionMetrics {
  /** Called at the end of a lease for each studio with erased leads. */
  erased(studioId: string, leads: number): void;
  failed(error: unknown): void;
}

/**
 * Erases closed leads whose retention has ended, deletes old tombstones of ended studios, and trims the log of
 * requests, until the signal aborts. Only one process at a time does so, at PACE; another one takes over when it stops.
 */
export async function retainLeads(
  deps: Changing,
  observer: RetentionObserver,
  signal: AbortSignal,
  pace = PACE,
): Promise<void> {
  const lease = new RetentionLease(deps, pace.idleMs);
  const pause = (ms: number) => sleep(ms, undefined, { signal, ref: false }).catch(() => {});
  const studios = new StudiosToRetain(deps, observer);
  const { waiting } = studios;
  for (;;) {
    await pause(pace.lookMs);
    if (signal.aborted) return;
    try {
      await studios.listEvery(pace.listMs, signal);
      if (signal.aborted) return;
      const time = await lease.take(studios.firstTime);
      observer.time(lease.time);
      if (time) await eraseSome(time);
    } catch (error) {
      observer.failed(error);
    }
  }

  /** Erases a few leads of each studio at a time, so that no studio waits for a large one. */
  async function eraseSome(time: Date): Promise<void> {
    const until = performance.now() + pace.leaseMs;
    const erased = new Map<string, number>();
    try {
      for (let left = pace.leadsPerLease; left > 0 && performance.now() < until && !signal.aborted; ) {
        const [first] = waiting;
        if (!first) break;
        const [studioId, position] = first;
        // A failing studio must not stop the others.
        waiting.delete(studioId);
        if ('removedTo' in position) {
          await removeAfter(studioId, position.removedTo, time);
          // Counts as much as a page of erasures, although it is one write.
          left -= LEADS_PER_PAGE;
          continue;
        }
        const page = await findExpired(deps, studioId, position, time);
        observer.processed('unreadable', page.skipped);
        for (const lead of page.records) {
          const outcome = await erase(deps, lead, observer);
          observer.processed(outcome, 1);
          if (outcome === 'erased') erased.set(studioId, (erased.get(studioId) ?? 0) + 1);
          await pause(pace.restMs);
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
      observer.processed('deleted', deleted);
      if (next !== null) waiting.set(studioId, { removedTo: next });
    } catch (error) {
      // The database role may lack the right to delete.
      observer.failed(error);
    }
    await pause(pace.restMs);
  }
}

/** The studios that may have leads to erase or delete, as listed. */
class StudiosToRetain {
  /** The studios to search. */
  readonly waiting = new Map<string, RetentionPosition>();
  readonly #deps: Changing;
  readonly #observer: RetentionObserver;
  #listedAt = Number.NEGATIVE_INFINITY;
  #firstTime: Date | null = null;
  /** The number of successive lists in which a studio could not be read. */
  #failedLists = 0;

  constructor(deps: Changing, observer: RetentionObserver) {
    this.#deps = deps;
    this.#observer = observer;
  }

  /** The first retention time to store; null: none yet. After a list in which a studio failed, waits for the next: too early a time takes long to catch up. */
  get firstTime(): Date | null {
    return this.#failedLists === 1 ? null : this.#firstTime;
  }

  /** Lists the studios again if the last list is older than `ms`. */
  async listEvery(ms: number, signal: AbortSignal): Promise<void> {
    if (performance.now() - this.#listedAt < ms) return;
    let hasFailed = false;
    for await (const studio of everyStudio(this.#deps)) {
      if (signal.aborted) return;
      await forgetOldRequests(this.#deps, studio.id).catch(this.#observer.failed);
      // A failing studio must not stop the others.
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
    // Not the times of erasures, which may be years old, or unreadable.
    const since = retention?.since ?? (await findStudioEnd(this.#deps, id));
    const isLatest = since && since <= latestProof(clock()) && !(this.#firstTime && since < this.#firstTime);
    if (isLatest) this.#firstTime = since;
  }
}

const NO_LEADS = { leads: [], next: null } as const;

/** Returns when a studio ended, or else the time of its latest event; undefined: neither is known. */
async function findStudioEnd({ store }: Reading, studioId: string): Promise<Date | undefined> {
  const events = await store.listAuditEvents(studioId, null);
  return (events.find(({ to, action }) => to === 'ended' && action === 'studio-status-changed') ?? events[0])?.time;
}

/** Deletes tombstones of an ended studio. Returns how many, and where to continue; null: there are no more to delete now. */
async function removeErased({ store }: Changing, studioId: string, after: string | null, time: Date) {
  const hasEnded = (await store.findStudio(studioId))?.status === 'ended';
  const { leads, next } = hasEnded ? await store.walkErasedLeads(studioId, after, LEADS_PER_REMOVAL) : NO_LEADS;
  const erasedUntil = tombstoneDeadline(time);
  const ids = leads.filter(({ erasedAt }) => erasedAt <= erasedUntil).map(({ id }) => id);
  if (ids.length > 0) return { deleted: await store.deleteErasedLeads(studioId, ids, erasedUntil), next };
  // EraseStudio erases in the order of ids, so later leads were erased later.
  return { deleted: 0, next: leads.length > 0 ? null : next };
}

/** Returns leads whose retention has ended, and where to continue in the studio; null: there are no more. */
async function findExpired({ store }: Reading, studioId: string, { from, within }: RangePosition, time: Date) {
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
  const erasure = { studioId, leadId, expectedUpdatedAt: updatedAt };
  try {
    return (await store.eraseLead({ ...erasure, ...BY_RETENTION, now: clock() })).kind;
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    observer.failed(error);
    return 'failed';
  }
}

export interface CountedExpiry {
  readonly wouldErase: number;
  /** Whether the true number may be higher. */
  readonly isLowerBound: boolean;
  /** These leads have not changed since this time. */
  readonly unchangedSince: Date;
}

/**
 * Counts the leads that a retention would erase now, at most MAX_COUNTED of each stage.
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
