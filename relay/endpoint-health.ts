import { DAY_MS, MINUTE_MS } from '../common/units.ts';
import { DELIVERED, type Outcome } from './send.ts';

/** The number of failures in a row, whatever the lead, that make an endpoint slow; some codes do so at once. */
const FAILURES_TO_SLOW = 5;
const SLOWS_AT_ONCE: readonly string[] = ['HTTP_429', 'HTTP_502', 'HTTP_504'];

/** The pauses between the probes of a slow endpoint: the first, doubled up to the maximum; and of a paused one. */
const FIRST_PROBE_MS = 5000;
const MAX_PROBE_MS = MINUTE_MS;
const PAUSED_PROBE_MS = 15 * MINUTE_MS;

/** How far a pause may differ from the schedule, so that not all attempts come in one moment. */
const JITTER = 0.2;

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
export const jittered = (pauseMs: number, random: number): number => pauseMs * (1 + JITTER * (2 * random - 1));

export function healthAfter(
  health: EndpointHealth,
  { code, retryAfterMs = 0 }: Outcome,
  now: number,
  random: number,
): EndpointHealth {
  if (health.state === 'gone') return health;
  if (code === 'HTTP_410') return { ...health, state: 'gone' };
  // A request from before it became slow is no probe.
  const isProbe = health.state === 'open' || now >= health.nextProbeAt;
  if (code === DELIVERED) return isProbe ? HEALTHY : health;
  if (!isProbe) return { ...health, nextProbeAt: Math.max(health.nextProbeAt, now + retryAfterMs) };
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
