import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';
import type { AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { Problem } from '../problems.ts';
import type { PresentedKey } from '../request-state.ts';
import {
  MAX_HOLD_MS,
  type Quota,
  type QuotaBearer,
  type QuotaDecision,
  type QuotaLimits,
  type QuotaPolicy,
  QuotaUnavailable,
} from './quota/quota-port.ts';

/**
 * Counts every request against the quotas of its key and studio before its body is read. A request that cannot be
 * counted is refused.
 *
 * @returns a function that rejects with the Problem for the caller
 * @rule 4.1.6 7.integration_rate_limited 7.1 8.quota 8.quota-headers
 */
export function requestCounter(
  quota: Quota,
  policy: QuotaPolicy,
): (key: PresentedKey, reply: FastifyReply) => Promise<void> {
  const { windowSeconds } = policy;
  return async (key, reply) => {
    const decision = await consume(quota, key.caller, policy);
    const { admitted, of, limit, resetSeconds } = decision;
    setQuotaHeaders(reply, decision, windowSeconds);
    if (admitted) key.countedIn = decision.windows;
    else {
      throw new Problem('integration_rate_limited', {
        detail: `The ${of}'s ${limit} requests per ${windowSeconds} s are used up; wait ${resetSeconds} s.`,
        headers: { 'retry-after': String(resetSeconds) },
      });
    }
  };
}

/** Named as in the IETF draft "RateLimit header fields for HTTP". They describe one window. */
export function setQuotaHeaders(
  reply: FastifyReply,
  { limit, remaining, resetSeconds }: QuotaDecision,
  windowSeconds: number,
): void {
  reply.header('ratelimit-policy', `"default";q=${limit};w=${windowSeconds}`);
  reply.header('ratelimit', `"default";r=${remaining};t=${resetSeconds}`);
}

/**
 * Refunds a request whose key turned out to be invalid. Never rejects: at worst the request stays counted.
 *
 * @rule 8.counted
 */
export async function refundRequest(
  { countedIn, caller }: PresentedKey,
  reply: FastifyReply,
  quota: Quota,
): Promise<void> {
  reply.removeHeader('ratelimit-policy');
  reply.removeHeader('ratelimit');
  if (countedIn !== undefined) await quota.refund(caller, countedIn).catch(() => {});
}

// @rule 7.integration_rate_unavailable 7.3
async function consume(quota: Quota, caller: AuthenticateApiKeyResponse, policy: QuotaPolicy): Promise<QuotaDecision> {
  try {
    return await consumePatiently(quota, caller, limitsOf(caller, policy));
  } catch (error) {
    if (error instanceof QuotaUnavailable) throw new Problem('integration_rate_unavailable', { cause: error });
    throw error;
  }
}

/**
 * Consumes a request, once it has waited for the end of a refusal that is less than a second away: no `Retry-After` could
 * say so, and the request would be too early.
 *
 * @throws QuotaUnavailable
 * @rule 7.1
 */
export async function consumePatiently(quota: Quota, bearer: QuotaBearer, limits: QuotaLimits): Promise<QuotaDecision> {
  for (let patienceMs = MAX_HOLD_MS; ; ) {
    const decision = await quota.consume(bearer, limits, patienceMs);
    if (decision.waitMs === 0) return decision;
    patienceMs -= decision.waitMs;
    await sleep(decision.waitMs);
  }
}

/** The quotas of the key and the studio; the gateway's settings are the defaults. */
const limitsOf = (caller: AuthenticateApiKeyResponse, policy: QuotaPolicy): QuotaLimits => ({
  key: caller.keyQuotaLimit ?? policy.limit,
  studio: caller.studioQuotaLimit ?? policy.studioLimit,
});
