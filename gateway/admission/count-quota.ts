import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';
import { assert } from '../../common/invariants.ts';
import type { PresentedKey } from '../key-check.ts';
import { Problem } from '../problems.ts';
import {
  MAX_HOLD_MS,
  type Quota,
  type QuotaCaller,
  type QuotaDecision,
  type QuotaLimits,
  type QuotaPolicy,
  QuotaUnavailable,
} from './quota/quota-port.ts';

/**
 * Counts every request against the quotas of its key and studio before its body is read. The gateway's settings are the defaults. A request
 * that cannot be counted is refused.
 *
 * @returns a function that returns the windows that count the request, or rejects with the Problem for the caller
 * @rule 4.1.6 7.integration_rate_limited 7.1 8.quota 8.quota-headers
 */
export function requestCounter(quota: Quota, { limit, studioLimit, windowSeconds }: QuotaPolicy) {
  return async ({ caller }: PresentedKey, reply: FastifyReply): Promise<readonly number[]> => {
    const limits = { key: caller.keyQuotaLimit ?? limit, studio: caller.studioQuotaLimit ?? studioLimit };
    const decision = await consumePatiently(quota, caller, limits);
    assert(decision.remaining >= 0 && decision.resetSeconds > 0, 'quota_left_not_negative');
    if (!decision.admitted) {
      const why = `The ${decision.owner}'s ${decision.limit} requests per ${windowSeconds} s are used up`;
      throw rateLimited(decision, windowSeconds, why);
    }
    reply.headers(quotaHeaders(decision, windowSeconds));
    return decision.windows;
  };
}

/** Returns the headers of the IETF draft "RateLimit header fields for HTTP", for one window. */
const quotaHeaders = ({ limit, remaining, resetSeconds }: QuotaDecision, windowSeconds: number) => ({
  'ratelimit-policy': `"default";q=${limit};w=${windowSeconds}`,
  ratelimit: `"default";r=${remaining};t=${resetSeconds}`,
});

/** Removes the quota headers from the reply to a request that is refunded. */
export const removeQuotaHeaders = (reply: FastifyReply): FastifyReply =>
  reply.removeHeader('ratelimit-policy').removeHeader('ratelimit');

/** @param why the beginning of the detail */
export const rateLimited = (decision: QuotaDecision, windowSeconds: number, why: string): Problem =>
  new Problem('integration_rate_limited', {
    detail: `${why}; wait ${decision.resetSeconds} s.`,
    headers: { 'retry-after': String(decision.resetSeconds), ...quotaHeaders(decision, windowSeconds) },
  });

/**
 * Consumes a request. If the refusal ends within a second, waits and tries again: `Retry-After` cannot name such a time.
 *
 * @throws Problem integration_rate_unavailable
 * @rule 7.integration_rate_unavailable 7.1 7.3
 */
export async function consumePatiently(quota: Quota, caller: QuotaCaller, limits: QuotaLimits): Promise<QuotaDecision> {
  try {
    for (let patienceMs = MAX_HOLD_MS; ; ) {
      const decision = await quota.consume(caller, limits, patienceMs);
      if (decision.waitMs === 0) return decision;
      patienceMs -= decision.waitMs;
      await sleep(decision.waitMs);
    }
  } catch (error) {
    if (error instanceof QuotaUnavailable) throw new Problem('integration_rate_unavailable', { cause: error });
    throw error;
  }
}
