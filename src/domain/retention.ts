import { DAY_MS } from '../../common/units.ts';
import { isOpen, LEAD_STAGES } from './lead.ts';
import type { LeadFilter } from './lead-filter.ts';
import type { Retention } from './studio.ts';

/** How long a new retention erases nothing, so that a mistyped one can be corrected; milliseconds. */
export const RETENTION_GRACE_MS = 7 * DAY_MS;

/** How long tombstones of an ended studio's leads stay, so that consumers see the erasures; milliseconds. */
const ERASED_KEPT_MS = 30 * DAY_MS;

/** Tombstones of leads erased before the returned time can be deleted. */
export const tombstoneDeadline = (time: Date): Date => new Date(time.getTime() - ERASED_KEPT_MS);

/** Safety margin: leads are kept this much longer, so a clock that is this far ahead erases none too early. */
const MARGIN_MS = DAY_MS;

/** Returns the latest stored time that proves the current time. A later one may come from a clock that is still ahead. */
export const latestProof = (now: Date): Date => new Date(now.getTime() - MARGIN_MS);

export const firstErasure = ({ since }: Retention): Date => new Date(since.getTime() + RETENTION_GRACE_MS);

/** A filter of leads in the order of their changes. */
export interface ExpiredLeads extends LeadFilter {
  readonly updated: { readonly start: Date; readonly end: Date };
}

/** Returns a filter for the closed leads whose retention has ended. @param start leaves out leads that changed before */
export const expiredLeads = (days: number, time: Date, start = new Date(0)): ExpiredLeads => ({
  stages: LEAD_STAGES.filter((stage) => !isOpen(stage)),
  sourceIds: [],
  created: { start: null, end: null },
  updated: { start, end: new Date(time.getTime() - days * DAY_MS - MARGIN_MS) },
});

/** How much faster than a clock the retention time runs while it is behind. */
const CATCH_UP = 2;

/**
 * Returns the next retention time. It follows the clock, but moves by at most CATCH_UP times the elapsed time. A clock
 * that is ahead for a while can therefore advance it only a little.
 *
 * @param time the current retention time; milliseconds since 1970, like `clock`
 * @param elapsedMs the minimum age of that time
 */
export const nextRetentionTime = (time: number, clock: number, elapsedMs: number): number =>
  Math.min(Math.max(clock, time - CATCH_UP * elapsedMs), time + CATCH_UP * elapsedMs);
