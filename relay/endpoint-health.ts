import { DAY_MS } from '../common/units.ts';
import { DELIVERED, type Outcome } from './send.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The pauses after the first to the ninth failure of a lead: the example schedule of Standard Webhooks. */
export const RETRY_PAUSES_MS: readonly number[] = [
  ...[5000, 5 * MINUTE_MS, 30 * MINUTE_MS],
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS),
];

/** The number of failures in a row, whatever the lead, that make an endpoint slow; some codes do so at once. */
const FAILURES_TO_SLOW = 5;
const SLOWS_AT_ONCE: readonly string[] = ['HTTP_429', 'HTTP_502', 'HTTP_504'];

/** The pauses between the probes of a slow endpoint: the first, doubled up to the maximum; and of a paused one. */
const FIRST_PROBE_MS = 5000;
const MAX_PROBE_MS = MINUTE_MS;
const PAUSED_PROBE_MS = 15 * MINUTE_MS;

/** How far a pause may differ from the schedule, so that not all attempts come in one moment. */
const JITTER = 0.2;

/** How many leads a consumer of the feed may have unacknowledged. */
export const WINDOW = 200;

export const ENDPOINT_STATES = ['open', 'slow', 'paused', 'gone'] as const;
export type EndpointState = (typeof ENDPOINT_STATES)[number];

/** What is known of an endpoint; times are milliseconds of any clock. Not stored: a relay that starts takes it for open. */
export interface EndpointHealth {
  /**
   * `open`: leads are sent concurrently. `slow`: it fails, one is tried now and then. `paused`: it has failed for a day.
   * `gone`: it answered 410, and nothing is sent until the endpoints file changes.
   */
  readonly state: EndpointState;
  /** Failures since the last success. */
  readonly failures: number;
  /** When it became slow. */
  readonly slowSince: number;
  readonly nextProbeAt: number;
}

export const HEALTHY: EndpointHealth = { state: 'open', failures: 0, slowSince: 0, nextProbeAt: 0 };

/** @param random from 0 to 1 */
const jittered = (pauseMs: number, random: number): number => pauseMs * (1 + JITTER * (2 * random - 1));

export function healthAfter(
  health: EndpointHealth,
  { code, retryAfterMs = 0 }: Outcome,
  now: number,
  random: number,
): EndpointHealth {
  if (health.state === 'gone') return health;
  if (code === DELIVERED) return HEALTHY;
  if (code === 'HTTP_410') return { ...health, state: 'gone' };
  // A request from before it became slow is no probe.
  if (health.state !== 'open' && now < health.nextProbeAt)
    return { ...health, nextProbeAt: Math.max(health.nextProbeAt, now + retryAfterMs) };
  const failures = health.failures + 1;
  const wasOpen = health.state === 'open';
  if (wasOpen && failures < FAILURES_TO_SLOW && !SLOWS_AT_ONCE.includes(code)) return { ...HEALTHY, failures };
  const slowSince = wasOpen ? now : health.slowSince;
  const state = now - slowSince >= DAY_MS ? 'paused' : 'slow';
  const probed = Math.max(0, failures - FAILURES_TO_SLOW);
  const pauseMs = state === 'paused' ? PAUSED_PROBE_MS : Math.min(FIRST_PROBE_MS * 2 ** probed, MAX_PROBE_MS);
  return { state, failures, slowSince, nextProbeAt: now + Math.max(jittered(pauseMs, random), retryAfterMs) };
}

/** Whether another request may begin while so many are in flight. */
export const mayBegin = ({ state, nextProbeAt }: EndpointHealth, inFlight: number, concurrency: number, now: number) =>
  state === 'open' ? inFlight < concurrency : state !== 'gone' && inFlight === 0 && now >= nextProbeAt;

/** What becomes of a lead after a failed attempt. */
export interface Failure {
  /** Whether it is set aside, which the core counts; else it waits. */
  readonly setAside: boolean;
  /** After which pause it comes again; undefined: not by itself. */
  readonly pauseMs?: number | undefined;
}

/**
 * Decides what becomes of a lead. Only failures of an open endpoint count for it, so that an outage sets no lead aside for
 * good. But where a whole window of leads has failed in a row, they make way for others: perhaps only these cannot be taken.
 *
 * @param health before the attempt
 * @param attempts how often the lead has been set aside before
 * @param unacknowledged how many leads are
 */
export function afterFailure(
  health: EndpointHealth,
  { code, retryAfterMs = 0 }: Outcome,
  {
    attempts,
    unacknowledged,
    random,
  }: { readonly attempts: number; readonly unacknowledged: number; readonly random: number },
): Failure {
  const pauseMs = RETRY_PAUSES_MS[attempts];
  const makesWay = health.failures >= WINDOW && unacknowledged >= WINDOW && pauseMs !== undefined;
  if (code === 'HTTP_410' || (health.state !== 'open' && !makesWay)) return { setAside: false };
  return { setAside: true, pauseMs: pauseMs && Math.max(jittered(pauseMs, random), retryAfterMs) };
}
