import { setTimeout as sleep } from 'node:timers/promises';
import fastify, { type FastifyInstance, LogController } from 'fastify';
import type { Logger } from 'pino';
import { connectionListener } from '../common/connection-listener.ts';
import { API_KEY_CACHE_MS, GATEWAY_AFTER_CLOSE_MS, REQUEST_ARRIVAL_MS } from '../common/deadlines.ts';
import { createLogger } from '../common/logger.ts';
import { type MetricsServer, serveMetrics } from '../common/metrics.ts';
import { openTracer } from '../common/open-tracer.ts';
import { Readiness } from '../common/readiness.ts';
import type { Running } from '../common/run-until-stopped.ts';
import { TlsCredentials } from '../common/tls-credentials.ts';
import type { Tracer } from '../common/tracing.ts';
import { ApiKeyCache } from './api-key-cache.ts';
import type { GatewayConfig } from './config.ts';
import { type CoreClient, createCoreClient } from './core-client.ts';
import { tlsToCore } from './core-connection.ts';
import { CoreToken } from './core-token.ts';
import { createHttpServer, giveEmptyBodies } from './http-server.ts';
import { LEAD_PATH, LEADS_PATH } from './lead-paths.ts';
import { createGatewayMetrics, type GatewayMetrics } from './metrics.ts';
import { requestObserver } from './observation.ts';
import { OpenConnections } from './open-connections.ts';
import { RequestOrder } from './pipelined-requests.ts';
import { admitCallers } from './plugins/admission.ts';
import { allowOnly, knowAllMethods } from './plugins/allowed-methods.ts';
import { beginRequests } from './plugins/begin-requests.ts';
import { checkKeyOfRefused } from './plugins/check-key-of-refused.ts';
import { type GatewayReadiness, reportHealth } from './plugins/health.ts';
import {
  answerClientErrors,
  answerFrameworkErrors,
  answerProblems,
  answerServerErrors,
} from './plugins/problem-json.ts';
import { arrivalObserver } from './plugins/request-observation.ts';
import { observedQuota } from './quota/observed-quota.ts';
import { openQuota } from './quota/open-quota.ts';
import type { Quota, QuotaPolicy } from './quota/quota-port.ts';
import { requestIdOf } from './request-id.ts';
import { docsRoutes } from './routes/docs.ts';
import { leadRoutes } from './routes/leads.ts';

/** The longest body that is read; bytes. The largest valid one, every character escaped, has about 29 KB. @rule 4.1.body */
export const MAX_BODY_BYTES = 32 * 1024;

/** In milliseconds. */
export interface GatewayDeadlines {
  readonly requestArrivalMs?: number;
  readonly knownCallerMs?: number;
}

/**
 * Starts the gateway: quota, core client, REST routes, port. The core need not be there yet.
 *
 * @param deadlines others than those of `deadlines.ts`
 * @throws Error when the port is taken, or the certificates cannot be used
 */
export async function startGateway(
  config: GatewayConfig,
  { requestArrivalMs = REQUEST_ARRIVAL_MS, knownCallerMs = API_KEY_CACHE_MS }: GatewayDeadlines = {},
): Promise<Running> {
  const credentials = new TlsCredentials(tlsToCore(config));
  const policy = {
    limit: config.QUOTA_LIMIT,
    studioLimit: config.QUOTA_STUDIO_LIMIT,
    windowSeconds: config.QUOTA_WINDOW_SECONDS,
  };
  const log = await createLogger('gateway', config.LOG_LEVEL);
  const metrics = config.GATEWAY_METRICS_ADDRESS && createGatewayMetrics();
  const tracer = await openTracer('gateway', config.OTEL_EXPORTER_OTLP_ENDPOINT);
  const counter = openQuota(policy.windowSeconds, config.REDIS_URL?.reveal(), config.REDIS_CLUSTER);
  const quota = observedQuota(counter, metrics, tracer !== undefined && config.REDIS_URL !== undefined);
  const token = new CoreToken(config);
  const core = createCoreClient(config, credentials, token, metrics);
  metrics?.watchCertificates(credentials);
  const following = [credentials.follow(log), token.follow(log)];
  let stopping = false;
  const readiness = {
    core: new Readiness('the core', () => core.check(), log),
    quota: new Readiness('the quota store', () => checkQuota(quota), log),
    isStopping: () => stopping,
  };
  metrics?.watchReadiness(readiness);
  let metricsServer: MetricsServer | undefined;
  const release = async () => {
    readiness.core.close();
    readiness.quota.close();
    for (const followNoMore of following) followNoMore();
    core.close();
    await quota.close();
    await metricsServer?.close();
    await tracer?.close();
  };
  try {
    const order = new RequestOrder(requestArrivalMs);
    const known = new ApiKeyCache(knownCallerMs);
    const app = await createGateway(config, { log, metrics, tracer, core, known, quota, policy, readiness, order });
    metricsServer = await serveMetrics(metrics?.registry, config.GATEWAY_METRICS_ADDRESS, log);
    const port = connectionListener(app.server);
    const url = await app.listen({ host: config.GATEWAY_HOST, port: config.GATEWAY_PORT });
    readiness.core.begin();
    readiness.quota.begin();
    return {
      url,
      metricsUrl: metricsServer?.url,
      drainMs: config.SHUTDOWN_DRAIN_MS,
      leavePort: port.leave,
      async stop() {
        stopping = true;
        // Whoever balances load must see /readyz turn, and kept-alive connections end, before the port closes.
        await sleep(config.SHUTDOWN_DRAIN_MS);
        const cutOff = setTimeout(() => app.server.closeAllConnections(), GATEWAY_AFTER_CLOSE_MS);
        await app.close();
        await port.left();
        clearTimeout(cutOff);
        await release();
      },
    };
  } catch (error) {
    await release();
    throw error;
  }
}

async function checkQuota(quota: Quota): Promise<void> {
  if (!(await quota.ready())) throw new Error('it does not count');
}

interface Parts {
  readonly log: Logger;
  readonly metrics: GatewayMetrics | undefined;
  readonly tracer: Tracer | undefined;
  readonly core: CoreClient;
  readonly known: ApiKeyCache;
  readonly quota: Quota;
  readonly policy: QuotaPolicy;
  readonly readiness: GatewayReadiness;
  readonly order: RequestOrder;
}

async function createGateway(config: GatewayConfig, parts: Parts): Promise<FastifyInstance> {
  const { log, metrics, tracer, core, known, quota, policy, readiness, order } = parts;
  const observe = requestObserver(log, metrics);
  const publicUrl = config.PUBLIC_URL;
  const app = fastify({
    loggerInstance: log,
    // One of its own for each request would cost as much as the line that it writes.
    childLoggerFactory: (parent) => parent,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: (request) => requestIdOf(request),
    bodyLimit: MAX_BODY_BYTES,
    serverFactory: (carryOut) => createHttpServer(order, carryOut),
    // What is in flight when the gateway stops is served, not refused.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 64 * 1024 },
    exposeHeadRoutes: false,
    ajv: { customOptions: { removeAdditional: false, coerceTypes: false, useDefaults: false, allErrors: true } },
    frameworkErrors: answerFrameworkErrors(publicUrl, observe),
    clientErrorHandler: answerClientErrors(order, publicUrl, observe),
  }) as unknown as FastifyInstance;
  app.decorateRequest('state');
  giveEmptyBodies(app);
  knowAllMethods(app);
  beginRequests(app, arrivalObserver(observe, metrics, tracer));
  answerServerErrors(app.server, order, publicUrl, observe);
  const connections = new OpenConnections(app.server, log);

  // As late as can be: a connection that is answered otherwise while the gateway stops would hold that up.
  app.addHook('onSend', (request, reply, payload, done) => {
    request.state.isAnswered = true;
    if (readiness.isStopping()) reply.header('connection', 'close');
    // Text or bytes; of a file, which is read as it is taken, the length stands in the head.
    const { length = Number(reply.getHeader('content-length') ?? 0) } = (payload ?? {}) as { readonly length?: number };
    connections.answers(request.raw.socket, length, request.state.key?.caller.apiKeyId);
    done();
  });
  answerProblems(app, publicUrl);
  reportHealth(app, readiness);
  docsRoutes(app, publicUrl, policy);

  allowOnly(app, LEADS_PATH, 'GET', 'POST');
  allowOnly(app, LEAD_PATH, 'GET');
  await app.register(async (v1) => {
    admitCallers(v1, { core, known, quota, policy });
    checkKeyOfRefused(v1, { core, known, quota });
    leadRoutes(v1, core, publicUrl);
  });
  return app;
}
