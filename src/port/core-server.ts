import type { Http2SecureServer, Http2Server, Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { Socket } from 'node:net';
import fastify, { type FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { appOptions } from '../../common/app.ts';
import { continueWhenRead } from '../../common/continue-when-read.ts';
import { CORE_AFTER_CLOSE_MS } from '../../common/deadlines.ts';
import type { Readiness } from '../../common/readiness.ts';
import type { TlsCredentials } from '../../common/tls-credentials.ts';
import type { CoreConfig } from '../config.ts';
import { Refusal } from '../domain/refusal.ts';
import { type Callers, callerIdentifier, callerValues } from '../rpc/callers.ts';
import { connectScope } from '../rpc/connect-scope.ts';
import type { ExchangeContext } from '../rpc/exchange-service.ts';
import { type Request, type Response, readPath } from '../rpc/request.ts';
import { describePath, servedMethods } from '../rpc/routes.ts';
import { connectionDraining, newCall, type RunCall, recordRefusal } from '../rpc/run-call.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { Connections } from './connections.ts';
import { createPortServer } from './server.ts';

/**
 * The maximum size of a message, compressed or not; bytes. The largest lead has about 10 KB. Methods with lists have
 * their own limit.
 */
const MAX_CALL_BYTES = 64 * 1024;

/** The nghttp2 error for a connection that does not begin as HTTP/2. */
const BAD_CLIENT_MAGIC = -903;

/** The dependencies of the server besides those of the use cases. */
interface CoreContext {
  readonly callers: Callers;
  /** Without a certificate the server does not use TLS. */
  readonly credentials: TlsCredentials;
  readonly readiness: Readiness;
  /** Aborts when shutdown begins, a drain time before the port closes. */
  readonly draining: AbortSignal;
  readonly log: Logger;
  readonly run: RunCall;
  readonly batchReceived: ExchangeContext['batchReceived'];
}

/**
 * Serves the core's RPCs on one HTTP/2 port, for gRPC, gRPC-Web and Connect; with TLS, also over HTTP/1.1. A request passes these
 * steps: its caller is identified; `connections` limits it; unknown methods are refused; Fastify routes it; `connectScope` takes
 * out the exchange with gateways; the plugin decodes it; the gate admits its caller; interceptors run it.
 */
export function createCoreServer(
  config: CoreConfig,
  deps: Dependencies,
  { callers, credentials, log, readiness, draining, run, batchReceived }: CoreContext,
): FastifyInstance {
  const identify = callerIdentifier(callers);
  const ending = new AbortController();
  const serving = { store: readiness, draining, ending: ending.signal };
  const methods = servedMethods(deps, { run, batchReceived, serving, reflects: config.CORE_REFLECTION });
  const scope = connectScope({ ...methods, readMaxBytes: MAX_CALL_BYTES }, run, log);

  const app = fastify<Http2Server>({
    ...appOptions(log),
    http2: true,
    serverFactory: (handler) =>
      createPortServer(credentials.loaded.pem, (request, response) =>
        begin(request, response, () => handler(request as Http2ServerRequest, response as Http2ServerResponse)),
      ) as Http2Server,
    // `connections` decides when they close.
    forceCloseConnections: false,
    clientErrorHandler: (error, socket) => endMalformed(error, socket as Socket),
  }) as unknown as FastifyInstance;
  app.register(scope.register);
  const server = app.server as unknown as Http2Server | Http2SecureServer;
  const connections = new Connections(server, config.CORE_CONNECTION_MAX_AGE_MS, log);
  const stopWatching = credentials.watch(log, (pem) => (server as Http2SecureServer).setSecureContext(pem));

  async function begin(request: Request, response: Response, next: () => void): Promise<void> {
    const caller = identify(request);
    const draining = await connections.begin(request, response, caller, describePath(readPath(request)));
    if (!draining) return;
    scope.begin(request, callerValues(caller).set(connectionDraining, draining));
    // Node leaves the interim response to the handler of the event.
    if (request.headers.expect === '100-continue') continueWhenRead(request, response);
    const fault = scope.findUnservedStatus(request);
    if (fault === undefined) next();
    else await scope.refuse(request, response, fault);
  }

  const report = (message: string) =>
    void recordRefusal(run, newCall(undefined, new Headers(), undefined), new Refusal('INVALID_REQUEST', message));
  function endMalformed(error: NodeJS.ErrnoException, socket: Socket) {
    // A TLS or network fault, which probes cause as well.
    if (!/^(HPE_|ERR_HTTP_)/.test(error.code ?? '')) return socket.destroy();
    // The peer already has its last answer, and is closing the connection.
    if (!socket.writable) return socket.destroy();
    connections.refuse(socket);
    report('The request is not HTTP/1.1, or did not arrive in time.');
    socket.write('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n');
    socket.destroySoon();
  }
  // HTTP/1.1 on a port for HTTP/2 only, or not HTTP at all. Node ends the connection.
  server.on('sessionError', ({ errno }: NodeJS.ErrnoException) => {
    if (errno === BAD_CLIENT_MAGIC) report('The connection is not HTTP/2.');
  });

  app.addHook('preClose', async () => {
    stopWatching();
    // The connections' grace period must begin before their calls end.
    connections.close(CORE_AFTER_CLOSE_MS);
    ending.abort();
  });
  return app;
}
