import { createServer, type IncomingMessage, METHODS, type RequestListener, type Server } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { continueWhenRead } from '../../common/continue-when-read.ts';
import type { ObserveRequest } from '../observation.ts';
import { type FaultyField, invalidRequest, Problem } from '../problems.ts';
import { addressFault, FRAGMENT, REQUEST_ID_HEADER, RequestState } from '../request.ts';
import type { ClientConnections } from './connections.ts';

/** The maximum size of a request's line and headers; bytes. */
const MAX_HEADER_BYTES = 16 * 1024;

/** The maximum size of a body; bytes. The largest valid one has about 29 KB, all escaped. @rule 4.1.body */
export const MAX_BODY_BYTES = 32 * 1024;

/** How often Node checks for requests that exceed their timeout; milliseconds. */
const CONNECTION_CHECK_MS = 1000;

/** The keep-alive timeout; milliseconds. Longer than the 60 s of common load balancers. */
const IDLE_TIMEOUT_MS = 72_000;

const KNOWN_METHODS = new Set<string | undefined>(METHODS);

/**
 * Creates Node's server. `connections` passes it one request of a connection at a time.
 *
 * @param refuse gets those of RTSP, which Node's parser lets pass: their methods are none to the router
 */
export function createHttpServer(
  connections: ClientConnections,
  handler: RequestListener,
  refuse: RequestListener,
): Server {
  const { arrivalMs } = connections.timing;
  const server = createServer(
    {
      // `beginRequests` checks it, and answers with a problem.
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
  // A client that closes its direction may still read: complete requests are answered, and then the connection closes.
  // Writing the first response shows whether the client has disconnected.
  return Object.assign(server, { httpAllowHalfOpen: true });
}

/**
 * Begins and ends every request: creates its state, sets the headers of every response, starts its observation, and
 * refuses ambiguous HTTP, unknown paths, and bodies that are malformed or late. Before such a body, the head has been
 * acted on: the request has an id, and is or will be counted. So it is answered in the order of checks, with its
 * headers, like one with any other fault.
 */
export function beginRequests(
  app: FastifyInstance,
  connections: ClientConnections,
  observe: ObserveRequest | undefined,
  isStopping: () => boolean,
): void {
  app.decorateRequest('state');
  app.addHook('onRequest', (request, reply, done) => {
    request.state = new RequestState();
    reply.header(REQUEST_ID_HEADER, request.id);
    // @rule 7.no-store
    reply.header('cache-control', 'no-store');
    const next = () => done(problemOf(request, reply));
    if (observe) observe(request, reply, next);
    else next();
  });
  app.addHook('preParsing', ({ raw, method }, _reply, payload, done) => {
    // Node has already ended the stream of a request without a body (`optimizeEmptyRequests`), so a reader would wait for
    // its end forever. That of a GET has none.
    const isEmpty = method !== 'GET' && (payload as Readable).readableEnded;
    done(connections.faultOf(raw) ?? null, isEmpty ? Readable.from([]) : payload);
  });
  app.addHook('onSend', ({ state, raw }, reply, payload, done) => {
    // An operation that ignores the body may have begun.
    const fault = state.problemCode === undefined && connections.faultOf(raw);
    if (fault) return done(fault);
    state.isAnswered = true;
    // As late as possible: a keep-alive connection would delay the shutdown.
    if (isStopping()) reply.header('connection', 'close');
    // A string or bytes; the length of a file, which is streamed, is in its header.
    const { length: characters = Number(reply.getHeader('content-length') ?? 0) } = (payload ?? {}) as {
      readonly length?: number;
    };
    connections.recordResponse(raw.socket, characters, state.key?.caller.apiKeyId);
    // Node reads all of a body that nobody needs. The length of a body in chunks is not known yet.
    const { 'content-length': length, 'transfer-encoding': coding } = raw.headers;
    const isUnbounded = coding !== undefined && !raw.complete;
    if (isUnbounded || Number(length) > MAX_BODY_BYTES) reply.header('connection', 'close');
    done();
  });
}

/** @rule 7.no-http 7.route_not_found */
function problemOf(request: FastifyRequest, reply: FastifyReply): Problem | undefined {
  const address = addressFault(request.url);
  const framing = address === FRAGMENT ? undefined : framingFault(request.raw);
  if (framing || address === FRAGMENT) reply.header('connection', 'close');
  if (framing) return invalidRequest([framing]);
  if (address) return address;
  // Before the body is read. The router would take a slash at the end for an empty id.
  const isOther = request.url.split('?', 1)[0]?.endsWith('/') && !request.routeOptions.url?.endsWith('/');
  return request.is404 || isOther ? new Problem('route_not_found') : undefined;
}

/** Refuses ambiguous framing and hosts, which an intermediary may interpret differently (request smuggling). */
function framingFault({ httpVersion, headers, headersDistinct }: IncomingMessage): FaultyField | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return { field: 'HTTP version', message: 'must be 1.1 or 1.0' };
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) {
    return { field: 'Transfer-Encoding', message: 'must be chunked, and needs HTTP/1.1' };
  }
  const { host = [] } = headersDistinct;
  if (httpVersion === '1.1' && host.length !== 1) return { field: 'Host', message: 'must be given once' };
  return host.every((value) => HOST.test(value)) ? undefined : { field: 'Host', message: 'must be a host and a port' };
}

/** RFC 9110, section 7.2: a host name or address, and a port. An empty value is allowed. */
const HOST = /^[A-Za-z0-9._~%!$&'()*+,;=[\]:-]*$/;
