import type { FastifyInstance } from 'fastify';
import type { CoreClient } from '../core-client.ts';
import { Problem } from '../problems.ts';
import type { Quota } from '../quota/quota.ts';
import { allowOnly } from './allowed-methods.ts';

/** Tells probes whether the process lives and whether it can serve. */
export function reportHealth(app: FastifyInstance, core: CoreClient, quota: Quota, isStopping: () => boolean): void {
  app.get('/healthz', { config: { operation: 'healthz' } }, async () => ({ status: 'alive' }));
  allowOnly(app, '/healthz', 'GET');

  app.get('/readyz', { config: { operation: 'readyz' } }, async () => {
    const [coreReady, quotaReady] = await Promise.all([core.isServing(), quota.ready()]);
    const faults = [
      ...(isStopping() ? ['the gateway is stopping'] : []),
      ...(coreReady ? [] : ['the core does not serve']),
      ...(quotaReady ? [] : ['the quota store does not answer']),
    ];
    if (faults.length > 0) throw new Problem('integration_unavailable', { detail: `Not ready: ${faults.join(', ')}.` });
    return { status: 'ready' };
  });
  allowOnly(app, '/readyz', 'GET');
}
