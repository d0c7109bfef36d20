import { createServer, type RequestListener, type Server } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import type { RequestOrder } from './pipelined-requests.ts';

/** The longest head of a request that is read: its line and headers; bytes. */
export const MAX_HEADER_BYTES = 16 * 1024;

/** How often connections are looked over for requests that take longer; milliseconds. */
const CONNECTION_CHECK_MS = 1000;

/** How long a connection stays open while nothing is asked; milliseconds. Longer than the 60 s of the usual balancers. */
export const IDLE_TIMEOUT_MS = 72_000;

/**
 * Gives an empty body to whoever reads that of a request without one: Node has closed it before (`optimizeEmptyRequests`), and
 * nobody would ever hear of its end.
 */
export function giveEmptyBodies(app: FastifyInstance): void {
  app.addHook('preParsing', (_request, _reply, payload, done) => {
    done(null, (payload as Readable).readableEnded ? Readable.from([]) : payload);
  });
}

/** Node's server, which hands the framework one request of a connection at a time. */
export function createHttpServer(order: RequestOrder, carryOut: RequestListener): Server {
  const server = createServer(
    {
      // The framework's hooks say so in the contract's words.
      requireHostHeader: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: order.arrivalMs,
      requestTimeout: order.arrivalMs,
      connectionsCheckingInterval: CONNECTION_CHECK_MS,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      // A read has no body: to wait for the end of none takes a tenth of what Node does for it.
      optimizeEmptyRequests: true,
    },
    (request, response) => order.carryOutInTurn(request, response, carryOut),
  );
  // Whoever closes its own direction may still read: what came whole is answered, and the connection ends with that. One who
  // does not read is found out with the first answer.
  return Object.assign(server, { httpAllowHalfOpen: true });
}
