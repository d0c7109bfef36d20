import { createServer, METHODS, type RequestListener, type Server } from 'node:http';
import { continueWhenRead } from '../../common/continue-when-read.ts';
import type { ClientConnections } from './connections.ts';

/** The maximum size of a request's line and headers; bytes. */
const MAX_HEADER_BYTES = 16 * 1024;

/** How often Node checks for requests that exceed their timeout; milliseconds. */
const CONNECTION_CHECK_MS = 1000;

/** The keep-alive timeout; milliseconds. It exceeds the 60 s of common load balancers. */
const IDLE_TIMEOUT_MS = 72_000;

const KNOWN_METHODS = new Set<string | undefined>(METHODS);

/**
 * Creates Node's server. `connections` passes it one request per connection at a time.
 *
 * @param refuse gets requests with RTSP methods, which Node's parser accepts and the router does not know
 */
export function createHttpServer(
  connections: ClientConnections,
  handler: RequestListener,
  refuse: RequestListener,
): Server {
  const { arrivalMs } = connections.timing;
  const server = createServer(
    {
      // `beginRequests` checks the header, and answers with a problem.
      requireHostHeader: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: arrivalMs,
      requestTimeout: arrivalMs,
      connectionsCheckingInterval: CONNECTION_CHECK_MS,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      // Waiting for the end of an empty body takes a tenth of Node's time for a read.
      optimizeEmptyRequests: true,
    },
    (request, response) => connections.serve(request, response, KNOWN_METHODS.has(request.method) ? handler : refuse),
  );
  server.on('checkContinue', (request, response) => {
    continueWhenRead(request, response);
    server.emit('request', request, response);
  });
  connections.watch(server);
  // A client that half-closes may still read. Its complete requests are answered, then the connection closes. Writing the first response
  // shows whether the client has disconnected.
  return Object.assign(server, { httpAllowHalfOpen: true });
}
