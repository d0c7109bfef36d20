import { currentSpan } from '../../common/tracing.ts';
import type { GatewayMetrics } from '../metrics.ts';
import type { Quota } from './quota-port.ts';

/**
 * A quota that is observed itself: what it decides, and how long that takes.
 *
 * @param isTraced whether it is a part of a trace: what is counted in memory takes no time
 */
export function observedQuota(quota: Quota, metrics: GatewayMetrics | undefined, isTraced: boolean): Quota {
  if (!metrics && !isTraced) return quota;
  return {
    ...quota,
    async consume(bearer, limits) {
      const begun = performance.now();
      const span = isTraced ? currentSpan.getStore()?.child('redis consume', { 'db.system.name': 'redis' }) : undefined;
      try {
        const decision = await quota.consume(bearer, limits);
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
