import { RateLimiterMemory } from 'rate-limiter-flexible';
import { decisionOf } from './decision.ts';
import { type Quota, type QuotaPolicy, QuotaUnavailable } from './quota.ts';

/** Counts in this process alone: for a gateway without replicas, which may forget its counts when it stops. */
export function createMemoryQuota(policy: QuotaPolicy): Quota {
  const limiter = new RateLimiterMemory({ points: policy.limit, duration: policy.windowSeconds });
  let closed = false;
  return {
    async consume(apiKeyId) {
      if (closed) throw new QuotaUnavailable('the quota is closed');
      return decisionOf(policy, limiter.consume(apiKeyId));
    },
    async putBack(apiKeyId) {
      if (closed) throw new QuotaUnavailable('the quota is closed');
      await limiter.reward(apiKeyId);
    },
    async ready() {
      return !closed;
    },
    async close() {
      closed = true;
      // Each key's window has a timer, which ends with its record.
      for (const { key } of limiter.dump().storage) await limiter.delete(key);
    },
  };
}
