import { RateLimiterRes } from 'rate-limiter-flexible';
import type { QuotaDecision, QuotaPolicy } from './quota.ts';

/**
 * The decision in an answer of rate-limiter-flexible, which resolves for an admitted request and rejects with the same
 * class for a refused one. Other rejections are passed on.
 */
export async function decisionOf(
  { limit, windowSeconds }: QuotaPolicy,
  answer: Promise<RateLimiterRes>,
): Promise<QuotaDecision> {
  const counted = await answer.catch((reason: unknown) => {
    if (reason instanceof RateLimiterRes) return reason;
    throw reason;
  });
  return {
    admitted: counted.consumedPoints <= limit,
    limit,
    remaining: counted.remainingPoints,
    // In its last moment a window has 0 left. One that began under a longer policy, or before the clock was set back,
    // has more than the window.
    resetMs: Math.min(Math.max(counted.msBeforeNext, 1), windowSeconds * 1000),
  };
}
