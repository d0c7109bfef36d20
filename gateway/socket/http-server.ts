import { createServer, type RequestListener, type Server } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import type { ClientConnections } from './connections.ts';

/** The maximum size of a request's line and headers; bytes. */
const MAX_HEADER_BYTES = 16 * 1024;

/** How often Node checks for requests that exceed their timeout; milliseconds. */
const CONNECTION_CHECK_MS = 1000;

/** The keep-alive timeout; milliseconds. Longer than the 60 s of common load balancers. */
const IDLE_TIMEOUT_MS = 72_000;

/**
 * Replaces the body stream of a request without a body: Node has already ended it (`optimizeEmptyRequests`), so a
 * reader would wait for its end forever.
 */
export function replaceEndedBodies(app: FastifyInstance): void {
  app.addHook('preParsing', (_request, _reply, payload, done) => {
    done(null, (payload as Readable).readableEnded ? Readable.from([]) : payload);
  });
}

/** Creates Node's server; the handler gets one request of a connection at a time. */
export function createHttpServer(connections: ClientConnections, handler: RequestListener): Server {
  const { arrivalMs } = connections.timing;
  const server = createServer(
    {
      // `begin-requests.ts` checks it, and answers with a problem.
      requireHostHeader: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: arrivalMs,
      requestTimeout: arrivalMs,
      connectionsCheckingInterval: CONNECTION_CHECK_MS,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      // Waiting for the end of an empty body takes a tenth of Node's time for a read.
      optimizeEmptyRequests: true,
    },
    (request, response) => connections.serve(request, response, handler),
  );
  connections.watch(server);
  // A client that closes its direction may still read: complete requests are answered, and then the connection closes.
  // Writing the first response shows whether the client has disconnected.
  return Object.assign(server, { httpAllowHalfOpen: true });
}
