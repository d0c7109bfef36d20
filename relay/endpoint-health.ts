import { DAY_MS, MINUTE_MS } from '../common/units.ts';
import { DELIVERED, type Outcome } from './send.ts';

/** The number of failures in a row, whatever the lead, that make an endpoint slow; some codes do so at once. */
const FAILURES_TO_SLOW = 5;
const SLOWS_AT_ONCE: readonly string[] = ['HTTP_429', 'HTTP_502', 'HTTP_504'];

/**
 * The pauses between the probes of a slow endpoint. The first is as long as the receiver asks for. It is short after a 429
 * that names no time. Further failures double the pause up to the maximum. A paused endpoint has another.
 */
const FIRST_PROBE_MS = 5000;
const SHORTEST_PAUSE_MS = 1000;
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
   * `gone`: it answered 410, and nothing is sent until its entry of the endpoints file changes.
   */
  readonly state: EndpointState;
  /** Failures since the last success. One that makes it slow at once counts as FAILURES_TO_SLOW. */
  readonly failures: number;
  /** When it became slow. */
  readonly slowSince: number;
  readonly nextProbeAt: number;
  /** The maximum number of requests in flight; the relay has one, too. It grows by one with each success. */
  readonly maxInFlight: number;
}

export const HEALTHY: EndpointHealth = {
  state: 'open',
  failures: 0,
  slowSince: 0,
  nextProbeAt: 0,
  maxInFlight: Number.POSITIVE_INFINITY,
};

/** @param random from 0 to 1 */
export const jittered = (pauseMs: number, random: number): number => pauseMs * (1 + JITTER * (2 * random - 1));

/** Whether the receiver asks for fewer requests, whatever the lead. */
export const asksForPause = ({ code, retryAfterMs }: Outcome): boolean =>
  code === 'HTTP_429' || (code === 'HTTP_503' && retryAfterMs !== undefined);

/** @param beganAt when the request began that has this outcome now */
export function healthAfter(
  health: EndpointHealth,
  outcome: Outcome,
  { beganAt, now, random }: { readonly beganAt: number; readonly now: number; readonly random: number },
): EndpointHealth {
  const { code, retryAfterMs, retryAfterMs: askedMs = 0 } = outcome;
  if (health.state === 'gone') return health;
  if (code === 'HTTP_410') return { ...health, state: 'gone' };
  // A request from before it became slow is no probe.
  const isProbe = beganAt >= health.nextProbeAt;
  if (code === DELIVERED) return isProbe ? { ...HEALTHY, maxInFlight: health.maxInFlight + 1 } : health;
  if (!isProbe) return { ...health, nextProbeAt: Math.max(health.nextProbeAt, now + askedMs) };
  const slowsAtOnce = SLOWS_AT_ONCE.includes(code) || asksForPause(outcome);
  const failures = Math.max(health.failures + 1, slowsAtOnce ? FAILURES_TO_SLOW : 0);
  if (failures < FAILURES_TO_SLOW) return { ...health, failures };
  const slowSince = health.state === 'open' ? now : health.slowSince;
  const state = now - slowSince >= DAY_MS ? 'paused' : 'slow';
  const namesTime = code === 'HTTP_429' || retryAfterMs !== undefined;
  const firstMs = namesTime ? Math.max(askedMs, SHORTEST_PAUSE_MS) : jittered(FIRST_PROBE_MS, random);
  const slowMs = Math.min(firstMs * 2 ** (failures - FAILURES_TO_SLOW), MAX_PROBE_MS);
  const pauseMs = Math.max(state === 'paused' ? PAUSED_PROBE_MS : slowMs, askedMs);
  return { state, failures, slowSince, nextProbeAt: now + pauseMs, maxInFlight: 1 };
}

/** Whether another request may begin while so many are in flight. */
export const mayBegin = (health: EndpointHealth, inFlight: number, concurrency: number, now: number) =>
  health.state !== 'gone' && inFlight < Math.min(health.maxInFlight, concurrency) && now >= health.nextProbeAt;
