import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { addressFault, FRAGMENT } from '../address-fault.ts';
import type { ObserveRequest } from '../observation.ts';
import { type FaultyField, invalidRequest, Problem } from '../problems.ts';
import { REQUEST_ID_HEADER } from '../request-id.ts';
import { RequestState } from '../request-state.ts';

/**
 * Begins every request: creates its state, sets the headers of every response, starts its observation, and refuses
 * ambiguous HTTP and unknown paths.
 */
export function beginRequests(app: FastifyInstance, observe: ObserveRequest | undefined): void {
  app.addHook('onRequest', (request, reply, done) => {
    request.state = new RequestState();
    reply.header(REQUEST_ID_HEADER, request.id);
    // @rule 7.no-store
    reply.header('cache-control', 'no-store');
    const next = () => done(problemOf(request, reply));
    if (observe) observe(request, reply, next);
    else next();
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
  const isOther = pathOf(request).endsWith('/') && !request.routeOptions.url?.endsWith('/');
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

function pathOf(request: FastifyRequest): string {
  const [path = ''] = request.url.split('?', 1);
  return path;
}
