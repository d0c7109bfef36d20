import { serve } from '../common/app.ts';
import { CoreToken, tlsToCore } from '../common/core-connection.ts';
import { API_KEY_CACHE_MS, REQUEST_ARRIVAL_MS } from '../common/deadlines.ts';
import { createLogger, logSettings } from '../common/logger.ts';
import { openTracer } from '../common/open-tracer.ts';
import { Readiness } from '../common/readiness.ts';
import type { Running } from '../common/run-until-stopped.ts';
import { TlsCredentials } from '../common/tls-credentials.ts';
import { openQuota } from './admission/quota/open-quota.ts';
import type { Quota } from './admission/quota/quota-port.ts';
import { type GatewayConfig, gatewaySummary } from './config.ts';
import { createCoreClient } from './core/core-client.ts';
import { RequestLog } from './core/request-log.ts';
import { createGatewayMetrics, observedQuota } from './observation.ts';
import { createGatewayServer, type GatewayDeadlines } from './port/gateway-server.ts';

/**
 * Starts the gateway: quota, core client, REST routes, port. The core may start later.
 *
 * @param deadlines overrides for tests
 * @throws Error when the port is taken, or the certificates are unusable
 */
export async function startGateway(config: GatewayConfig, deadlines: Partial<GatewayDeadlines> = {}): Promise<Running> {
  const credentials = new TlsCredentials(tlsToCore(config));
  const log = await createLogger('gateway', config.LOG_LEVEL);
  logSettings(log, gatewaySummary(config), config);
  const metrics = config.GATEWAY_METRICS_ADDRESS && createGatewayMetrics();
  const tracer = await openTracer('gateway', config, log, metrics?.registry);
  const { QUOTA_WINDOW_SECONDS, REDIS_URL, REDIS_CLUSTER, REDIS_KEY_PREFIX } = config;
  const counter = await openQuota(QUOTA_WINDOW_SECONDS, REDIS_URL?.reveal(), REDIS_CLUSTER, REDIS_KEY_PREFIX);
  const quota = observedQuota(counter, metrics, tracer !== undefined && REDIS_URL !== undefined);
  const token = new CoreToken(config);
  const core = createCoreClient(config, credentials, token, metrics);
  const requestLog = config.GATEWAY_REQUEST_LOG ? new RequestLog(core.recordRequests, log, metrics) : undefined;
  const stopping = new AbortController();
  const readiness = {
    core: new Readiness('the core', () => core.check(), log),
    quota: new Readiness('the quota store', () => checkQuota(quota), log),
    isStopping: () => stopping.signal.aborted,
  };
  metrics?.watch(readiness, quota, credentials);
  const stopWatching = [credentials.watch(log), token.watch(log)];
  const app = createGatewayServer(
    { config, metrics, core, quota, readiness },
    { log, tracer, record: requestLog?.record },
    { requestArrivalMs: REQUEST_ARRIVAL_MS, keyCacheMs: API_KEY_CACHE_MS, ...deadlines },
  );
  app.addHook('onClose', async () => {
    for (const stop of stopWatching) stop();
    await requestLog?.close();
    core.close();
    await quota.close();
    await tracer?.close();
  });
  return serve(app, {
    address: { host: config.GATEWAY_HOST, port: config.GATEWAY_PORT },
    reusePort: config.REUSE_PORT,
    isSecure: false,
    metrics,
    metricsAddress: config.GATEWAY_METRICS_ADDRESS,
    dependencies: [readiness.core, readiness.quota],
    stopping,
    drainMs: config.SHUTDOWN_DRAIN_MS,
  });
}

async function checkQuota(quota: Quota): Promise<void> {
  const fault = await quota.fault();
  if (fault !== undefined) throw new Error(fault);
}
