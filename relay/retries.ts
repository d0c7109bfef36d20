import { HOUR_MS, MINUTE_MS } from '../common/units.ts';
import { asksForPause, type EndpointHealth, jittered } from './endpoint-health.ts';
import type { Outcome } from './send.ts';

/** The pauses after the first to the ninth failure of a lead: the example schedule of Standard Webhooks. */
export const RETRY_PAUSES_MS: readonly number[] = [
  ...[5000, 5 * MINUTE_MS, 30 * MINUTE_MS],
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS),
];

/** How many leads a consumer of the feed may have unacknowledged. */
export const WINDOW = 200;

/** What becomes of a lead after a failed attempt. */
export interface Failure {
  /** Whether it is set aside, which the core counts; else it waits. */
  readonly setAside: boolean;
  /** After which pause it comes again; undefined: not by itself. */
  readonly pauseMs?: number | undefined;
}

/**
 * Decides what becomes of a lead. Only failures of an open endpoint count for it, so that an outage sets no lead aside for
 * good. A receiver that asks for a pause refuses no lead. But where a whole window of leads has failed in a row, they make
 * way for others: perhaps only these cannot be taken.
 *
 * @param health before the attempt
 * @param attempts how often the lead has been set aside before
 * @param unacknowledged how many leads are
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
  const isOfEndpoint = health.state !== 'open' || asksForPause(outcome);
  if (code === 'HTTP_410' || (isOfEndpoint && !makesWay)) return { setAside: false };
  return { setAside: true, pauseMs: pauseMs && Math.max(jittered(pauseMs, random), retryAfterMs) };
}
