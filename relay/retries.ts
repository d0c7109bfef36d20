import { HOUR_MS, MINUTE_MS } from '../common/units.ts';
import { asksForPause, type EndpointHealth, jittered } from './endpoint-health.ts';
import type { Outcome } from './send.ts';

/** Pauses after the first to the ninth failure of a lead: the example schedule of Standard Webhooks. */
export const RETRY_PAUSES_MS: readonly number[] = [
  ...[5000, 5 * MINUTE_MS, 30 * MINUTE_MS],
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS),
];

/** How many unacknowledged leads a consumer of the feed may have. */
export const WINDOW = 200;

/** The fate of a lead after a failed attempt. */
export interface Failure {
  /** Whether the lead is set aside, which the core counts. Otherwise it waits in the schedule. */
  readonly setAside: boolean;
  /** The pause before the lead's next attempt; undefined: no automatic retry. */
  readonly pauseMs?: number | undefined;
}

/**
 * Decides what happens to a lead after a failure. Only failures of an open endpoint count against the lead, so an outage never sets leads
 * aside for good. A receiver that asks for a pause rejects no lead. When a whole window of leads has failed in a row, they are set aside to
 * let others through, because perhaps only these fail.
 *
 * @param health before the attempt
 * @param attempts how often the lead was set aside before
 * @param unacknowledged the number of unacknowledged leads
 */
export function afterFailure(
  health: EndpointHealth,
  outcome: Outcome,
  {
    attempts,
    unacknowledged,
    random,
  }: { readonly attempts: number; readonly unacknowledged: number; readonly random: number },
): Failure {
  const { code, retryAfterMs = 0 } = outcome;
  const pauseMs = RETRY_PAUSES_MS[attempts];
  const makesWay = health.failures >= WINDOW && unacknowledged >= WINDOW && pauseMs !== undefined;
  const isEndpointFault = health.state !== 'open' || asksForPause(outcome);
  if (code === 'HTTP_410' || (isEndpointFault && !makesWay)) return { setAside: false };
  return { setAside: true, pauseMs: pauseMs && Math.max(jittered(pauseMs, random), retryAfterMs) };
}
