import type { GatewayMetrics } from '../metrics.ts';
import type { Quota } from './quota.ts';

/** A quota that is counted itself: what it decides, and how long that takes. */
export function observedQuota(quota: Quota, metrics: GatewayMetrics | undefined): Quota {
  if (!metrics) return quota;
  return {
    ...quota,
    async consume(apiKeyId) {
      const begun = performance.now();
      try {
        const decision = await quota.consume(apiKeyId);
        metrics.quotaAsked(decision.admitted ? 'admitted' : 'limited', performance.now() - begun);
        return decision;
      } catch (error) {
        metrics.quotaAsked('unavailable', performance.now() - begun);
        throw error;
      }
    },
  };
}
