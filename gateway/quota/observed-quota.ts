import { currentSpan } from '../../common/tracing.ts';
import type { GatewayMetrics, QuotaOutcome } from '../metrics.ts';
import type { Quota, QuotaDecision } from './quota-port.ts';

/**
 * Records the decisions and durations of a quota in metrics and traces.
 *
 * @param isTraced false for a quota in memory, which takes no time
 */
export function observedQuota(quota: Quota, metrics: GatewayMetrics | undefined, isTraced: boolean): Quota {
  if (!metrics && !isTraced) return quota;
  return {
    ...quota,
    async consume(bearer, limits, patienceMs) {
      const startedAt = performance.now();
      const span = isTraced ? currentSpan.getStore()?.child('redis consume', { 'db.system.name': 'redis' }) : undefined;
      try {
        const decision = await quota.consume(bearer, limits, patienceMs);
        span?.end({ failed: false, attributes: { admitted: decision.admitted } });
        metrics?.quotaChecked(outcomeOf(decision), performance.now() - startedAt);
        return decision;
      } catch (error) {
        span?.end({ failed: true });
        metrics?.quotaChecked('unavailable', performance.now() - startedAt);
        throw error;
      }
    },
  };
}

function outcomeOf({ admitted, waitMs }: QuotaDecision): QuotaOutcome {
  if (admitted) return 'admitted';
  return waitMs > 0 ? 'delayed' : 'limited';
}
