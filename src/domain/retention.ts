import { DAY_MS } from '../../common/units.ts';
import { isOpen, LEAD_STAGES } from './lead.ts';
import type { LeadFilter } from './lead-filter.ts';
import type { Retention } from './studio.ts';

/** How long nothing is erased after a retention was set, so that a mistyped one can be put right; milliseconds. */
export const RETENTION_GRACE_MS = 7 * DAY_MS;

/** How long an erased lead of a studio that has ended is kept, in which consumers hear of it; milliseconds. */
const ERASED_KEPT_MS = 30 * DAY_MS;

/** Returns until when such leads were erased that are not kept any more at a time. */
export const lastKeptErasure = (time: Date): Date => new Date(time.getTime() - ERASED_KEPT_MS);

/** For how long a clock may be ahead, by any time, without an erasure too early: so much longer than its days a lead is kept. */
const MARGIN_MS = DAY_MS;

/** Returns the latest time that proves how late it is, if it was written: a later one may be of a clock that still is ahead. */
export const latestProof = (now: Date): Date => new Date(now.getTime() - MARGIN_MS);

export const firstErasure = ({ since }: Retention): Date => new Date(since.getTime() + RETENTION_GRACE_MS);

/** A filter of leads in the order of their changes. */
export interface ExpiredLeads extends LeadFilter {
  readonly updated: { readonly start: Date; readonly end: Date };
}

/** Selects the closed leads that are not kept any more at a time. @param start leaves out those that changed before */
export const expiredLeads = (days: number, time: Date, start = new Date(0)): ExpiredLeads => ({
  stages: LEAD_STAGES.filter((stage) => !isOpen(stage)),
  sourceIds: [],
  created: { start: null, end: null },
  updated: { start, end: new Date(time.getTime() - days * DAY_MS - MARGIN_MS) },
});

/** How much faster than a clock the time of retention runs that is behind it. */
const CATCH_UP = 2;

/**
 * Returns the next time that retention goes by. It follows the clock, but changes by no more than CATCH_UP times what has
 * passed: a clock that is ahead moves it ahead by no more than the time for which it is.
 *
 * @param time that before; milliseconds since 1970, like `clock`
 * @param elapsedMs how long it was the time, at least
 */
export const nextRetentionTime = (time: number, clock: number, elapsedMs: number): number =>
  Math.min(Math.max(clock, time - CATCH_UP * elapsedMs), time + CATCH_UP * elapsedMs);
