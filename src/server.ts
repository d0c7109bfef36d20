import type { Http2SecureServer } from 'node:http2';
import { Code } from '@connectrpc/connect';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import fastify, { type FastifyInstance, LogController } from 'fastify';
import type { Logger } from 'pino';
import { CORE_AFTER_CLOSE_MS, MAX_CALL_MS } from '../common/deadlines.ts';
import type { Readiness } from '../common/readiness.ts';
import type { TlsCredentials, TlsPem } from '../common/tls-credentials.ts';
import type { CoreConfig } from './config.ts';
import { closureReporter } from './http2/closure-log.ts';
import { limitConnections } from './http2/connection-limits.ts';
import { Connections, streamOf } from './http2/connections.ts';
import { enforceKeepalive } from './http2/keepalive.ts';
import { enforceMaxConnectionAge } from './http2/max-connection-age.ts';
import { endUnfinishedStreams } from './http2/unfinished-streams.ts';
import { endUnreadResponses } from './http2/unread-responses.ts';
import { valuesOf } from './rpc/caller-access.ts';
import { admitKnownCallers, callerIdentifier } from './rpc/caller-authentication.ts';
import type { Callers } from './rpc/callers.ts';
import { connectionDraining } from './rpc/connection-draining.ts';
import type { ItemContext } from './rpc/items.ts';
import type { CallObserver } from './rpc/observation.ts';
import { isBidiStream, routes } from './rpc/routes.ts';
import { callRunner, runCalls } from './rpc/run-call.ts';
import type { Dependencies } from './usecases/dependencies.ts';

/**
 * The maximum size of a message, compressed or not; bytes. The largest lead has about 10 KB. Methods with lists have a
 * bound of their own.
 */
const MAX_CALL_BYTES = 64 * 1024;

/** The dependencies of the server besides the use cases'. */
interface CoreContext {
  readonly callers: Callers;
  /** Without a certificate the server does not use TLS. */
  readonly credentials: TlsCredentials;
  /** The readiness of the store. */
  readonly readiness: Readiness;
  /** Aborted when shutdown begins, a drain time before the port closes. */
  readonly draining: AbortSignal;
  readonly log: Logger;
  readonly observer: CallObserver | undefined;
  readonly batchReceived: ItemContext['batchReceived'];
}

/** Serves the core's RPCs on one HTTP/2 port, for gRPC, gRPC-Web and Connect; with TLS, over HTTP/1.1 too. */
export async function createCoreServer(
  config: CoreConfig,
  deps: Dependencies,
  { callers, credentials, log, readiness, draining, observer, batchReceived }: CoreContext,
): Promise<FastifyInstance> {
  const app = fastify({
    ...transport(credentials.pem),
    loggerInstance: log,
    // A child logger per call would cost as much as the log line itself.
    childLoggerFactory: (parent) => parent,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: MAX_CALL_BYTES,
    // Fastify would close idle sessions, and a closed session keeps reading: see `CallerConnection.cutOff`.
    http2SessionTimeout: 0,
  }) as unknown as FastifyInstance;
  const server = app.server as unknown as Http2SecureServer;
  const stopWatching = credentials.watch(log, (pem) => server.setSecureContext(pem));
  app.addHook('onClose', async () => stopWatching());
  const identify = callerIdentifier(callers);
  const connections = new Connections(app);
  const report = closureReporter(log);
  limitConnections(app, connections, { identify, report });
  enforceMaxConnectionAge(app, connections, config.CORE_CONNECTION_MAX_AGE_MS);
  endUnfinishedStreams(app, isBidiStream);
  endUnreadResponses(app, connections, report);
  enforceKeepalive(app, connections, report);
  const ending = new AbortController();
  app.addHook('preClose', async () => {
    // The grace period of connections begins before the calls on them end.
    for (const connection of connections) connection.close(CORE_AFTER_CLOSE_MS);
    ending.abort();
  });
  answerUnknownCalls(app);
  const run = callRunner(log, observer);
  await app.register(fastifyConnectPlugin, {
    routes: routes(deps, {
      run,
      batchReceived,
      serving: { store: readiness, draining, ending: ending.signal },
      reflects: config.CORE_REFLECTION,
    }),
    requestGate: admitKnownCallers(run),
    interceptors: [runCalls(run)],
    contextValues(request) {
      const values = valuesOf(identify(request));
      const connection = connections.of(request);
      return connection ? values.set(connectionDraining, connection.draining) : values;
    },
    readMaxBytes: MAX_CALL_BYTES,
    maxTimeoutMs: MAX_CALL_MS,
  });
  return app;
}

/** Responds to unknown methods as the protocols require: to a gRPC client, a plain 404 is a transport failure. */
function answerUnknownCalls(app: FastifyInstance): void {
  app.setNotFoundHandler((request, reply) => {
    const stream = streamOf(reply);
    if (!stream || !request.headers['content-type']?.startsWith('application/grpc')) return reply.code(404).send();
    reply.hijack();
    const headers = { 'content-type': 'application/grpc', 'grpc-status': Code.Unimplemented };
    // The headers end the stream, so they are the trailers too ("Trailers-Only").
    stream.respond({ ...headers, 'grpc-message': 'unknown method' }, { endStream: true });
  });
}

function transport(pem: TlsPem) {
  if (!pem.cert) return { http2: true } as const;
  const tls = { allowHTTP1: true, ...pem };
  return { http2: true, https: pem.ca ? { ...tls, requestCert: true, rejectUnauthorized: true } : tls } as const;
}
