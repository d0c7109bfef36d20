import type { FastifyReply } from 'fastify';
import type { AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { Problem } from '../problems.ts';
import {
  type Quota,
  type QuotaDecision,
  type QuotaLimits,
  type QuotaPolicy,
  QuotaUnavailable,
} from '../quota/quota-port.ts';
import type { PresentedKey } from '../request-state.ts';

/**
 * Counts every request of a key, and of its studio, before its body is looked at. What cannot be counted is not let in.
 *
 * @returns what rejects with the Problem that the caller is to be told
 * @rule 4.1.6 7.integration_rate_limited 7.1 8.quota 8.quota-headers
 */
export function requestCounter(
  quota: Quota,
  policy: QuotaPolicy,
): (key: PresentedKey, reply: FastifyReply) => Promise<void> {
  const { windowSeconds } = policy;
  return async (key, reply) => {
    const decision = await consume(quota, key.caller, policy);
    const { admitted, of, limit, remaining, resetSeconds } = decision;
    // Names as in the IETF draft "RateLimit header fields for HTTP". Of the key's window and the studio's, one is told.
    reply.header('ratelimit-policy', `"default";q=${limit};w=${windowSeconds}`);
    reply.header('ratelimit', `"default";r=${remaining};t=${resetSeconds}`);
    if (admitted) key.countedIn = decision.windows;
    else {
      throw new Problem('integration_rate_limited', {
        detail: `The ${of}'s ${limit} requests per ${windowSeconds} s are used up; wait ${resetSeconds} s.`,
        headers: { 'retry-after': String(resetSeconds) },
      });
    }
  };
}

/**
 * Undoes the counting of a request whose key turned out not to be good. Never rejects: at worst the request stays counted.
 *
 * @rule 8.counted
 */
export async function uncount({ countedIn, caller }: PresentedKey, reply: FastifyReply, quota: Quota): Promise<void> {
  tellNoQuota(reply);
  if (countedIn !== undefined) await quota.putBack(caller, countedIn).catch(() => {});
}

/** An answer that is neither to a counted request nor the quota's own refusal says nothing of the quota. */
export function tellNoQuota(reply: FastifyReply): void {
  reply.removeHeader('ratelimit-policy');
  reply.removeHeader('ratelimit');
}

// @rule 7.integration_rate_unavailable 7.3
async function consume(quota: Quota, caller: AuthenticateApiKeyResponse, policy: QuotaPolicy): Promise<QuotaDecision> {
  try {
    return await quota.consume(caller, limitsOf(caller, policy));
  } catch (error) {
    if (error instanceof QuotaUnavailable) throw new Problem('integration_rate_unavailable', { cause: error });
    throw error;
  }
}

/** What a caller's own quotas leave open, the gateway's settings decide. */
const limitsOf = (caller: AuthenticateApiKeyResponse, policy: QuotaPolicy): QuotaLimits => ({
  key: caller.keyQuotaLimit ?? policy.limit,
  studio: caller.studioQuotaLimit ?? policy.studioLimit,
});
