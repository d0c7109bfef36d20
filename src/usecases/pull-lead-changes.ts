import type { LeadChange } from '../domain/lead-change.ts';
import { Faults } from '../domain/refusal.ts';
import type { LeadChangePoller, PollResult } from './lead-change-poller.ts';
import { pageLimit } from './list-leads.ts';

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
  return poll?.changes.slice(0, pageLimit(max)) ?? [];
}
