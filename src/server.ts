import type { Http2SecureServer } from 'node:http2';
import { Code } from '@connectrpc/connect';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import fastify, { type FastifyInstance, LogController } from 'fastify';
import type { Logger } from 'pino';
import { MAX_CALL_MS } from '../common/deadlines.ts';
import type { Readiness } from '../common/readiness.ts';
import type { TlsCredentials, TlsPem } from '../common/tls-credentials.ts';
import type { CoreConfig } from './config.ts';
import { limitConnections } from './http2/connection-limits.ts';
import { Connections, streamOf } from './http2/connections.ts';
import { endedReporter } from './http2/ended-stream-log.ts';
import { closeGracefully } from './http2/graceful-close.ts';
import { enforceKeepalive } from './http2/keepalive.ts';
import { enforceMaxConnectionAge } from './http2/max-connection-age.ts';
import { endUnfinishedStreams } from './http2/unfinished-streams.ts';
import { endUnreadResponses } from './http2/unread-responses.ts';
import { valuesOf } from './rpc/caller-access.ts';
import { admitKnownCallers, identifier } from './rpc/caller-authentication.ts';
import type { Callers } from './rpc/callers.ts';
import { connectionDraining } from './rpc/connection-draining.ts';
import type { ItemContext } from './rpc/items.ts';
import type { CallObserver } from './rpc/observation.ts';
import { mayLast, routes } from './rpc/routes.ts';
import { callRunner, runCalls } from './rpc/run-call.ts';
import { safeJson } from './rpc/safe-json.ts';
import type { Dependencies } from './usecases/dependencies.ts';

/** The largest message a caller may send, packed or not; bytes. The largest lead has about 10 KB, batches their own bound. */
const MAX_CALL_BYTES = 64 * 1024;

/** What a server has around it. */
interface CoreContext {
  /** Who may call it. */
  readonly callers: Callers;
  /** What it shows and whom it trusts over TLS; without a certificate it speaks none. */
  readonly credentials: TlsCredentials;
  /** Whether the store is there. */
  readonly readiness: Readiness;
  /** Aborted when the core means to stop, some time before it does. */
  readonly draining: AbortSignal;
  readonly log: Logger;
  /** Is told of every call. */
  readonly observer: CallObserver | undefined;
  readonly batchCame: ItemContext['batchCame'];
}

/**
 * Puts the core's RPCs on one HTTP/2 port, for gRPC, gRPC-Web and Connect alike; with TLS, for HTTP/1.1 too.
 *
 * @param context what it has around it
 */
export async function createCoreServer(
  config: CoreConfig,
  deps: Dependencies,
  { callers, credentials, log, readiness, draining, observer, batchCame }: CoreContext,
): Promise<FastifyInstance> {
  const app = fastify({
    ...transport(credentials.pem),
    loggerInstance: log,
    // One of its own for each call would cost as much as the line that it writes.
    childLoggerFactory: (parent) => parent,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: MAX_CALL_BYTES,
    // A session that is closed for being idle goes on to read, which is what `CallerConnection.end` is careful of.
    http2SessionTimeout: 0,
  }) as unknown as FastifyInstance;
  const followNoMore = credentials.follow(log, (pem) => secureServerOf(app).setSecureContext(pem));
  app.addHook('onClose', async () => followNoMore());
  const identify = identifier(callers);
  const connections = new Connections(app);
  const tell = endedReporter(log);
  limitConnections(app, connections, { identify, tell });
  enforceMaxConnectionAge(app, connections, config.CORE_CONNECTION_MAX_AGE_MS);
  endUnfinishedStreams(app, mayLast);
  closeGracefully(app, connections);
  endUnreadResponses(app, connections, tell);
  enforceKeepalive(app, connections, tell);
  const ending = new AbortController();
  app.addHook('preClose', async () => ending.abort());
  answerUnknownCalls(app);
  const run = callRunner(log, observer);
  await app.register(fastifyConnectPlugin, {
    routes: routes(deps, {
      run,
      batchCame,
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
    jsonOptions: safeJson,
    readMaxBytes: MAX_CALL_BYTES,
    maxTimeoutMs: MAX_CALL_MS,
  });
  return app;
}

/** As the protocols have it: a gRPC client that got a plain 404 would see a server that breaks off. */
function answerUnknownCalls(app: FastifyInstance): void {
  app.setNotFoundHandler((request, reply) => {
    const stream = streamOf(reply);
    if (!stream || !request.headers['content-type']?.startsWith('application/grpc')) return reply.code(404).send();
    reply.hijack();
    const headers = { 'content-type': 'application/grpc', 'grpc-status': Code.Unimplemented };
    // Nothing may follow the headers: then they are the trailers, too.
    stream.respond({ ...headers, 'grpc-message': 'there is no such method' }, { endStream: true });
  });
}

function transport(pem: TlsPem) {
  if (!pem.cert) return { http2: true } as const;
  const tls = { allowHTTP1: true, ...pem };
  return { http2: true, https: pem.ca ? { ...tls, requestCert: true, rejectUnauthorized: true } : tls } as const;
}

/** The server of a core that speaks TLS. */
const secureServerOf = (app: FastifyInstance) => app.server as unknown as Http2SecureServer;
