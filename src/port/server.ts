import { once } from 'node:events';
import { type IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer, createServer, type Http2SecureServer, type Http2Server } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { Logger } from 'pino';
import { continueWhenRead } from '../../common/continue-when-read.ts';
import { CORE_AFTER_CLOSE_MS, REQUEST_ARRIVAL_MS } from '../../common/deadlines.ts';
import type { Readiness } from '../../common/readiness.ts';
import { type Address, localHost } from '../../common/settings.ts';
import type { TlsCredentials, TlsPem } from '../../common/tls-credentials.ts';
import type { CoreConfig } from '../config.ts';
import { Refusal } from '../domain/refusal.ts';
import { callHandler, pathOf, type Request, type Response } from '../rpc/call-handler.ts';
import { type Callers, callerIdentifier, valuesOf } from '../rpc/callers.ts';
import type { ExchangeContext } from '../rpc/exchange-service.ts';
import { callOf, connectionDraining, type RunCall, refused } from '../rpc/observation.ts';
import { maxTimeoutMsOf, servedMethods, traitsOf } from '../rpc/routes.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { MAX_CALLS_PER_CONNECTION } from './connection.ts';
import { Connections } from './connections.ts';

/**
 * The maximum size of a message, compressed or not; bytes. The largest lead has about 10 KB. Methods with lists have a
 * bound of their own.
 */
const MAX_CALL_BYTES = 64 * 1024;

/** How often Node checks for requests of HTTP/1.1 that have not arrived in time; milliseconds. */
const ARRIVAL_CHECK_MS = 1000;

/** The number of nghttp2's error for a connection that does not begin as HTTP/2 does. */
const BAD_CLIENT_MAGIC = -903;

/** Of HTTP/1.1. Node reads them; its types lack them. */
const HTTP1_OPTIONS: object = {
  // Otherwise Node answers by itself.
  requireHostHeader: false,
  headersTimeout: REQUEST_ARRIVAL_MS,
  requestTimeout: REQUEST_ARRIVAL_MS,
  connectionsCheckingInterval: ARRIVAL_CHECK_MS,
};

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
  readonly run: RunCall;
  readonly batchReceived: ExchangeContext['batchReceived'];
}

export interface CoreServer {
  readonly server: Http2Server | Http2SecureServer;
  /** Starts listening, and returns the address. Rejects if it cannot. */
  listen(address: Address & { readonly reusePort?: boolean }): Promise<string>;
  /** Stops accepting connections and calls. Resolves when the calls in flight have ended, or their time is up. */
  close(): Promise<void>;
}

/** Serves the core's RPCs on one HTTP/2 port, for gRPC, gRPC-Web and Connect; with TLS, over HTTP/1.1 too. */
export function createCoreServer(
  config: CoreConfig,
  deps: Dependencies,
  { callers, credentials, log, readiness, draining, run, batchReceived }: CoreContext,
): CoreServer {
  const server = serverOf(credentials.pem);
  const stopWatching = credentials.watch(log, (pem) => (server as Http2SecureServer).setSecureContext(pem));
  const connections = new Connections(server, config.CORE_CONNECTION_MAX_AGE_MS, log);
  const identify = callerIdentifier(callers);
  const ending = new AbortController();
  const serving = { store: readiness, draining, ending: ending.signal };
  const methods = servedMethods(deps, { run, batchReceived, serving, reflects: config.CORE_REFLECTION });
  const serve = callHandler({ ...methods, maxTimeoutMsOf, readMaxBytes: MAX_CALL_BYTES }, run, log);

  handleAll(server, async (request, response) => {
    const caller = identify(request);
    const draining = await connections.begin(request, response, caller, traitsOf(pathOf(request)));
    if (!draining) return;
    // Node leaves it to who handles the event.
    if (request.headers.expect === '100-continue') continueWhenRead(request, response);
    await serve(request, response, valuesOf(caller).set(connectionDraining, draining));
  });

  const refuse = (message: string) =>
    void refused(run, callOf(undefined, new Headers(), undefined), new Refusal('INVALID_REQUEST', message));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // A fault of TLS, or of the network, which a probe causes as well.
    if (!/^(HPE_|ERR_HTTP_)/.test(error.code ?? '')) return socket.destroy();
    // The peer ends a connection whose last answer it has.
    if (!socket.writable) return socket.destroy();
    connections.refuse(socket);
    refuse('The request is not HTTP/1.1, or did not arrive in time.');
    socket.write('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n');
    socket.destroySoon();
  });

  // HTTP/1.1 where only HTTP/2 is spoken, or no HTTP. Node ends the connection.
  server.on('sessionError', ({ errno }: NodeJS.ErrnoException) => {
    if (errno === BAD_CLIENT_MAGIC) refuse('The connection is not HTTP/2.');
  });

  return {
    server,
    async listen(address) {
      server.listen(address);
      await once(server, 'listening');
      const { address: bound, port } = server.address() as AddressInfo;
      const url = `${credentials.pem.cert ? 'https' : 'http'}://${localHost(bound)}:${port}`;
      log.info(`Server listening at ${url}`);
      return url;
    },
    async close() {
      stopWatching();
      // The grace period of connections begins before the calls on them end.
      connections.close(CORE_AFTER_CLOSE_MS);
      ending.abort();
      // An error if it has left the port to other processes: then it is closed already.
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

type Handle = (request: Request, response: Response) => Promise<void>;

/** Passes every request to one function, whichever way Node would answer it by itself. */
function handleAll(server: Http2Server | Http2SecureServer, handle: Handle): void {
  const pass = (request: Request, response: Response) => {
    // Of HTTP/1.1, one that is cut off may fail when the library listens no more, which would end the process.
    request.on('error', () => {});
    return handle(request, response);
  };
  const events = ['request', 'checkContinue', 'checkExpectation'] as const;
  for (const event of events) server.on(event, pass as (...args: unknown[]) => void);
  // CONNECT of HTTP/1.1 takes Node's own listener away.
  server.on('secureConnection', (socket: Socket) => socket.on('error', () => {}));
  server.on('connect', (request: Request, response: Response | Socket) => {
    // Of HTTP/1.1, Node passes the bare socket.
    if ('stream' in request) return pass(request, response as Response);
    const answer = new ServerResponse(request as IncomingMessage);
    try {
      answer.assignSocket(response as Socket);
    } catch {
      // An earlier request has no response yet, and this one would end the connection.
      return (response as Socket).destroy();
    }
    answer.once('finish', () => (response as Socket).destroySoon());
    return pass(request, answer);
  });
}

function serverOf(pem: TlsPem): Http2Server | Http2SecureServer {
  const settings = { maxConcurrentStreams: MAX_CALLS_PER_CONNECTION };
  if (!pem.cert) return createServer({ settings });
  return createSecureServer({
    settings,
    ...pem,
    ...(pem.ca ? { requestCert: true, rejectUnauthorized: true } : {}),
    allowHTTP1: true,
    ...HTTP1_OPTIONS,
  });
}
