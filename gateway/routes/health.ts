import type { FastifyInstance } from 'fastify';
import { ALIVE, READY } from '../../common/probe-answers.ts';
import { Problem } from '../problems.ts';
import { allowOnly } from './allowed-methods.ts';

/** Serves the liveness and readiness probes. @rule 10.health */
export function healthRoutes(app: FastifyInstance): void {
  const { core, quota, isStopping } = app.readiness;
  app.get('/healthz', { config: { operation: 'healthz' } }, async () => ALIVE);
  allowOnly(app, '/healthz', 'GET');

  app.get('/readyz', { config: { operation: 'readyz' } }, async () => {
    const [coreFault, quotaFault] = await Promise.all([core.fault(), quota.fault()]);
    const faults = [
      ...(isStopping() ? ['the gateway is stopping'] : []),
      ...(coreFault === undefined ? [] : ['the core does not serve']),
      ...(quotaFault === undefined ? [] : ['the quota store does not answer']),
    ];
    if (faults.length === 0) return READY;
    // Already logged: Readiness logs when a fault begins and ends, and probes come every few seconds.
    throw new Problem('integration_unavailable', { detail: `Not ready: ${faults.join(', ')}.`, isLogged: true });
  });
  allowOnly(app, '/readyz', 'GET');
}
