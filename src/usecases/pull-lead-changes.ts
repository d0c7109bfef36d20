import type { LeadChange } from '../domain/lead-change.ts';
import { Faults } from '../domain/refusal.ts';
import type { LeadChangePoller, PollResult } from './lead-change-poller.ts';
import { pageLimit } from './list-leads.ts';

/** How long a pull waits at most; milliseconds. */
export const MAX_WAIT_MS = 20_000;

/** A request for changes, not yet checked. */
export interface PullLeadChangesQuery {
  /** 0: the usual number. Above the largest: the largest. */
  readonly max: number;
  /** How long to wait when there are none; milliseconds. */
  readonly waitMs: number;
}

/**
 * Gives leads with unacknowledged changes, those whose changes began first in front; waits for some when there are none.
 *
 * @param ending ends the wait
 * @throws Refusal INVALID_REQUEST
 */
export async function pullLeadChanges(
  looks: LeadChangePoller,
  { max, waitMs }: PullLeadChangesQuery,
  ending: AbortSignal,
): Promise<readonly LeadChange[]> {
  const faults = new Faults();
  faults.note('max', max < 0 ? 'must not be negative' : undefined);
  faults.note('wait', waitMs < 0 ? 'must not be negative' : undefined);
  faults.refuseIfAny();
  const isOver = AbortSignal.any([ending, AbortSignal.timeout(Math.min(waitMs, MAX_WAIT_MS))]);
  const over = new Promise<undefined>((resolve) => {
    isOver.addEventListener('abort', () => resolve(undefined), { once: true });
  });
  let look: PollResult | undefined = await looks.now();
  while (look?.changes.length === 0 && !isOver.aborted) look = await Promise.race([looks.next(), over]);
  return look?.changes.slice(0, pageLimit(max)) ?? [];
}
