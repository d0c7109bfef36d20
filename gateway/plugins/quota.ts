import type { FastifyInstance } from 'fastify';
import { Problem } from '../problems.ts';
import { type Quota, type QuotaDecision, type QuotaPolicy, QuotaUnavailable } from '../quota/quota.ts';

/** Counts every authenticated request of a key, before its body is looked at. What cannot be counted is not let in. */
export function countRequests(app: FastifyInstance, quota: Quota, policy: QuotaPolicy): void {
  // Names as in the IETF draft "RateLimit header fields for HTTP".
  const policyHeader = `"default";q=${policy.limit};w=${policy.windowSeconds}`;
  app.addHook('onRequest', async (request, reply) => {
    const decision = await consume(quota, request.caller.apiKeyId);
    const resetSeconds = Math.max(1, Math.ceil(decision.resetMs / 1000));
    reply.header('ratelimit-policy', policyHeader);
    reply.header('ratelimit', `"default";r=${decision.remaining};t=${resetSeconds}`);
    if (!decision.admitted) {
      throw new Problem('integration_rate_limited', {
        detail: `The key's ${policy.limit} requests per ${policy.windowSeconds} s are used up; wait ${resetSeconds} s.`,
        headers: { 'retry-after': String(resetSeconds) },
      });
    }
  });
}

async function consume(quota: Quota, apiKeyId: string): Promise<QuotaDecision> {
  try {
    return await quota.consume(apiKeyId);
  } catch (error) {
    if (error instanceof QuotaUnavailable) throw new Problem('integration_rate_unavailable', { cause: error });
    throw error;
  }
}
