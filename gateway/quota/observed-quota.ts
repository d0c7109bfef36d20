import { currentSpan } from '../../common/tracing.ts';
import type { GatewayMetrics } from '../metrics.ts';
import type { Quota } from './quota-port.ts';

/**
 * A quota that is observed itself: what it decides, and how long that takes.
 *
 * @param tracedAs where it counts, when requests are traced
 */
export function observedQuota(
  quota: Quota,
  metrics: GatewayMetrics | undefined,
  tracedAs: 'redis' | 'memory' | undefined,
): Quota {
  if (!metrics && !tracedAs) return quota;
  return {
    ...quota,
    async consume(apiKeyId) {
      const begun = performance.now();
      const span = currentSpan.getStore()?.child(`${tracedAs} consume`, { 'db.system.name': tracedAs });
      try {
        const decision = await quota.consume(apiKeyId);
        span?.end({ failed: false, attributes: { admitted: decision.admitted } });
        metrics?.quotaAsked(decision.admitted ? 'admitted' : 'limited', performance.now() - begun);
        return decision;
      } catch (error) {
        span?.end({ failed: true });
        metrics?.quotaAsked('unavailable', performance.now() - begun);
        throw error;
      }
    },
  };
}
