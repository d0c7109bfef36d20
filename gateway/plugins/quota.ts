import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../problems.ts';
import { type Quota, type QuotaDecision, type QuotaPolicy, QuotaUnavailable } from '../quota/quota.ts';

/** What is nearly over is not given anything back: it would have come for the next window. Milliseconds. */
const NEARLY_OVER_MS = 1000;

/** Counts every request of a key, before its body is looked at. What cannot be counted is not let in. */
export function countRequests(app: FastifyInstance, quota: Quota, policy: QuotaPolicy): void {
  // Names as in the IETF draft "RateLimit header fields for HTTP".
  const policyHeader = `"default";q=${policy.limit};w=${policy.windowSeconds}`;
  app.addHook('onRequest', async (request, reply) => {
    const decision = await consume(quota, request.caller.apiKeyId);
    const resetSeconds = Math.max(1, Math.ceil(decision.resetMs / 1000));
    reply.header('ratelimit-policy', policyHeader);
    reply.header('ratelimit', `"default";r=${decision.remaining};t=${resetSeconds}`);
    if (decision.admitted) request.countedUntil = performance.now() + decision.resetMs;
    else {
      throw new Problem('integration_rate_limited', {
        detail: `The key's ${policy.limit} requests per ${policy.windowSeconds} s are used up; wait ${resetSeconds} s.`,
        headers: { 'retry-after': String(resetSeconds) },
      });
    }
  });
}

/** Undoes the counting of a request whose key turned out not to be good. Never rejects: at worst the request stays counted. */
export async function uncount(request: FastifyRequest, reply: FastifyReply, quota: Quota): Promise<void> {
  reply.removeHeader('ratelimit-policy');
  reply.removeHeader('ratelimit');
  const { countedUntil, caller } = request;
  if (countedUntil === undefined || performance.now() > countedUntil - NEARLY_OVER_MS) return;
  await quota.putBack(caller.apiKeyId).catch(() => {});
}

async function consume(quota: Quota, apiKeyId: string): Promise<QuotaDecision> {
  try {
    return await quota.consume(apiKeyId);
  } catch (error) {
    if (error instanceof QuotaUnavailable) throw new Problem('integration_rate_unavailable', { cause: error });
    throw error;
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** When the window ends in which it was counted, on the clock of `performance`; undefined: it was not. */
    countedUntil: number | undefined;
  }
}
