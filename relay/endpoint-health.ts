import { DAY_MS, MINUTE_MS } from '../common/units.ts';
import { DELIVERED, type Outcome } from './send.ts';

/** How many failures in a row, of any leads, make an endpoint slow. Some codes make it slow at once. */
const FAILURES_TO_SLOW = 5;
const SLOWS_AT_ONCE: readonly string[] = ['HTTP_429', 'HTTP_502', 'HTTP_504'];

/**
 * Pauses between probes of a slow endpoint. The first pause is what the receiver asks for, SHORTEST_PAUSE_MS after a 429 without a time,
 * and FIRST_PROBE_MS otherwise. Each further failure doubles the pause, up to MAX_PROBE_MS. A paused endpoint waits PAUSED_PROBE_MS.
 */
const FIRST_PROBE_MS = 5000;
const SHORTEST_PAUSE_MS = 1000;
const MAX_PROBE_MS = MINUTE_MS;
const PAUSED_PROBE_MS = 15 * MINUTE_MS;

/** Jitter, as a share of the pause. */
const JITTER = 0.2;

export const ENDPOINT_STATES = ['open', 'slow', 'paused', 'gone'] as const;
export type EndpointState = (typeof ENDPOINT_STATES)[number];

/** The health of an endpoint; times are milliseconds of any clock. It is not stored: a starting relay assumes `open`. */
export interface EndpointHealth {
  /**
   * `open`: leads are sent concurrently. `slow`: it fails, and is probed with one lead at a time. `paused`: it has failed for a day.
   * `gone`: it answered 410, and gets nothing until its entry in the endpoints file changes.
   */
  readonly state: EndpointState;
  /** Failures since the last success. A failure that makes the endpoint slow at once counts as FAILURES_TO_SLOW. */
  readonly failures: number;
  readonly slowSince: number;
  readonly nextProbeAt: number;
  /** The maximum number of requests in flight, if lower than the relay's own maximum. It grows by one with each success. */
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

/** Returns whether the receiver asks for fewer requests, whatever the lead. */
export const asksForPause = ({ code, retryAfterMs }: Outcome): boolean =>
  code === 'HTTP_429' || (code === 'HTTP_503' && retryAfterMs !== undefined);

/** Returns the health after an attempt. @param beganAt when the request began */
export function healthAfter(
  health: EndpointHealth,
  outcome: Outcome,
  { beganAt, now, random }: { readonly beganAt: number; readonly now: number; readonly random: number },
): EndpointHealth {
  const { code, retryAfterMs, retryAfterMs: askedMs = 0 } = outcome;
  if (health.state === 'gone') return health;
  if (code === 'HTTP_410') return { ...health, state: 'gone' };
  // A request that began before the endpoint became slow is not a probe.
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

/** Returns whether another request may begin while `inFlight` requests are in flight. */
export const mayBegin = (health: EndpointHealth, inFlight: number, concurrency: number, now: number) =>
  health.state !== 'gone' && inFlight < Math.min(health.maxInFlight, concurrency) && now >= health.nextProbeAt;
