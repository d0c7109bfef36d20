import { parse } from 'node:querystring';
import { setTimeout as sleep } from 'node:timers/promises';
import fastify, { type FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { appOptions } from '../common/app-options.ts';
import { CoreToken, tlsToCore } from '../common/core-connection.ts';
import { API_KEY_CACHE_MS, GATEWAY_AFTER_CLOSE_MS, REQUEST_ARRIVAL_MS } from '../common/deadlines.ts';
import { createLogger, logSettings } from '../common/logger.ts';
import { countDroppedSpans, type MetricsServer, serveMetrics } from '../common/metrics.ts';
import { openTracer } from '../common/open-tracer.ts';
import { PACKAGES_FOLDER } from '../common/package-settings.ts';
import { Readiness } from '../common/readiness.ts';
import type { Running } from '../common/run-until-stopped.ts';
import { stopListening } from '../common/stop-listening.ts';
import { TlsCredentials } from '../common/tls-credentials.ts';
import type { Tracer } from '../common/tracing.ts';
import { type AdmissionParts, admitCallers } from './admission/admission.ts';
import { ApiKeyCache } from './admission/authentication.ts';
import { openQuota } from './admission/quota/open-quota.ts';
import type { Quota } from './admission/quota/quota-port.ts';
import { clientAddresses } from './client-address.ts';
import { type GatewayConfig, gatewaySummary } from './config.ts';
import { createCoreClient } from './core/core-client.ts';
import { RequestLog } from './core/request-log.ts';
import { findPackages } from './docs/packages.ts';
import {
  arrivalObserver,
  createGatewayMetrics,
  type GatewayMetrics,
  type GatewayReadiness,
  observedQuota,
  requestObserver,
} from './observation.ts';
import { allowOnly, registerAllMethods } from './operations/allowed-methods.ts';
import { docsRoutes } from './operations/docs.ts';
import { reportHealth } from './operations/health.ts';
import { leadRoutes } from './operations/leads.ts';
import { LEAD_PATH, LEADS_PATH } from './operations/schemas.ts';
import { requestIdOf } from './request.ts';
import { ClientConnections } from './socket/connections.ts';
import { beginRequests, createHttpServer, MAX_BODY_BYTES } from './socket/http-server.ts';
import { ProblemAnswers } from './socket/problem-json.ts';

/** The maximum number of parameters of an address that are read; further ones are ignored. */
const MAX_PARAMETERS = 100;

/** Overrides for tests; milliseconds. */
export interface GatewayDeadlines {
  readonly requestArrivalMs?: number;
  readonly keyCacheMs?: number;
}

/**
 * Starts the gateway: quota, core client, REST routes, port. The core may start later.
 *
 * @throws Error when the port is taken, or the certificates are unusable
 */
export async function startGateway(
  config: GatewayConfig,
  { requestArrivalMs = REQUEST_ARRIVAL_MS, keyCacheMs = API_KEY_CACHE_MS }: GatewayDeadlines = {},
): Promise<Running> {
  const credentials = new TlsCredentials(tlsToCore(config));
  const policy = {
    limit: config.QUOTA_LIMIT,
    studioLimit: config.QUOTA_STUDIO_LIMIT,
    windowSeconds: config.QUOTA_WINDOW_SECONDS,
  };
  const log = await createLogger('gateway', config.LOG_LEVEL);
  logSettings(log, gatewaySummary(config), config);
  const metrics = config.GATEWAY_METRICS_ADDRESS && createGatewayMetrics();
  const tracer = await openTracer('gateway', config, log);
  if (metrics && tracer) countDroppedSpans(metrics.registry, tracer);
  const counter = await openQuota(
    policy.windowSeconds,
    config.REDIS_URL?.reveal(),
    config.REDIS_CLUSTER,
    config.REDIS_KEY_PREFIX,
  );
  const quota = observedQuota(counter, metrics, tracer !== undefined && config.REDIS_URL !== undefined);
  const token = new CoreToken(config);
  const core = createCoreClient(config, credentials, token, metrics);
  const requestLog = config.GATEWAY_REQUEST_LOG ? new RequestLog(core, log, metrics) : undefined;
  const stopWatching = [credentials.watch(log), token.watch(log)];
  let stopping = false;
  const readiness = {
    core: new Readiness('the core', () => core.check(), log),
    quota: new Readiness('the quota store', () => checkQuota(quota), log),
    isStopping: () => stopping,
  };
  metrics?.watch(readiness, quota, credentials);
  let metricsServer: MetricsServer | undefined;
  const release = async () => {
    readiness.core.close();
    readiness.quota.close();
    for (const stop of stopWatching) stop();
    await requestLog?.close();
    core.close();
    await quota.close();
    await metricsServer?.close();
    await tracer?.close();
  };
  try {
    const cache = new ApiKeyCache(keyCacheMs);
    const connections = new ClientConnections(log, { arrivalMs: requestArrivalMs });
    const parts = { log, metrics, tracer, core, requestLog, cache, quota, policy, readiness, connections };
    const app = await createGateway(config, parts);
    metricsServer = await serveMetrics(metrics?.registry, config.GATEWAY_METRICS_ADDRESS, log);
    // Fastify passes `reusePort` on; its types lack it.
    const address = { host: config.GATEWAY_HOST, port: config.GATEWAY_PORT, reusePort: config.REUSE_PORT };
    const url = await app.listen(address);
    readiness.core.start();
    readiness.quota.start();
    return {
      url,
      metricsUrl: metricsServer?.url,
      drainMs: config.SHUTDOWN_DRAIN_MS,
      /** Waits until every accepted request is answered, for at most GATEWAY_AFTER_CLOSE_MS. */
      async stop() {
        stopping = true;
        const connectionsEnded = config.REUSE_PORT && stopListening(app.server);
        // Load balancers must see /readyz fail, and keep-alive connections close, before the port closes.
        await sleep(config.SHUTDOWN_DRAIN_MS);
        const timer = setTimeout(() => connections.closeAll(), GATEWAY_AFTER_CLOSE_MS);
        await app.close();
        await connectionsEnded;
        clearTimeout(timer);
        await release();
      },
    };
  } catch (error) {
    await release();
    throw error;
  }
}

async function checkQuota(quota: Quota): Promise<void> {
  const fault = await quota.fault();
  if (fault !== undefined) throw new Error(fault);
}

interface Parts extends AdmissionParts {
  readonly log: Logger;
  readonly metrics: GatewayMetrics | undefined;
  readonly tracer: Tracer | undefined;
  readonly requestLog: RequestLog | undefined;
  readonly readiness: GatewayReadiness;
  readonly connections: ClientConnections;
}

async function createGateway(config: GatewayConfig, parts: Parts): Promise<FastifyInstance> {
  const { log, metrics, tracer, core, requestLog, policy, readiness, connections } = parts;
  const observe = requestObserver(log, metrics);
  const publicUrl = config.PUBLIC_URL;
  const answers = new ProblemAnswers(publicUrl, observe);
  const app: FastifyInstance = fastify({
    ...appOptions(log),
    genReqId: requestIdOf,
    bodyLimit: MAX_BODY_BYTES,
    serverFactory: (handler) => createHttpServer(connections, handler, answers.malformed),
    routerOptions: {
      maxParamLength: 64 * 1024,
      querystringParser: (query) => parse(query, undefined, undefined, { maxKeys: MAX_PARAMETERS }),
    },
    ajv: { customOptions: { removeAdditional: false, coerceTypes: false, useDefaults: false, allErrors: true } },
    frameworkErrors: answers.ofFramework,
    clientErrorHandler: answers.ofClients(() => app, connections),
  }) as unknown as FastifyInstance;
  const addressOf = clientAddresses(config.TRUSTED_PROXIES, log);
  app.decorateRequest('clientAddress', {
    getter() {
      return addressOf(this);
    },
  });
  registerAllMethods(app);
  beginRequests(
    app,
    connections,
    arrivalObserver({ observe, record: requestLog?.record, metrics, tracer }, config.LOG_CLIENT_ADDRESSES),
    readiness.isStopping,
  );
  answers.ofServer(app.server, connections);
  answers.ofRequests(app);
  reportHealth(app, readiness);
  // What was kept comes first: the lock files of websites have its checksums.
  const packages = findPackages([config.KEPT_PACKAGES_FOLDER ?? [], PACKAGES_FOLDER].flat());
  docsRoutes(app, publicUrl, policy, packages);

  allowOnly(app, LEADS_PATH, 'GET', 'POST');
  allowOnly(app, LEAD_PATH, 'GET');
  await app.register(async (v1) => {
    admitCallers(v1, parts);
    leadRoutes(v1, core, publicUrl);
  });
  return app;
}
