import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type FaultyField, invalidRequest, Problem } from '../problems.ts';
import { REQUEST_ID_HEADER } from '../request-id.ts';
import { RequestState } from '../request-state.ts';
import type { ObserveRequest } from './request-observation.ts';

/**
 * Begins every request: what is known of it, whoever observes it, the headers of each answer; and refuses what is doubtful HTTP,
 * or where nothing is.
 */
export function beginRequests(app: FastifyInstance, observe: ObserveRequest | undefined): void {
  app.addHook('onRequest', (request, reply, done) => {
    request.state = new RequestState();
    reply.header(REQUEST_ID_HEADER, request.id);
    // @rule 7.no-store
    reply.header('cache-control', 'no-store');
    const goOn = () => done(faultOf(request, reply));
    if (observe) observe(request, reply, goOn);
    else goOn();
  });
}

/** @rule 7.no-http 7.route_not_found */
function faultOf(request: FastifyRequest, reply: FastifyReply): Problem | undefined {
  // Nobody sends one; the router would take what follows for a query.
  if (request.url.includes('#')) return invalidRequest([], 'The address has a fragment.');
  const fault = framingFault(request.raw);
  if (fault) {
    reply.header('connection', 'close');
    return invalidRequest([fault]);
  }
  // An unknown path is told before anybody looks at a body; no path of this API ends in a slash.
  return request.is404 || pathOf(request).endsWith('/') ? new Problem('route_not_found') : undefined;
}

/** What makes it uncertain where a message ends, or whom it is for: another reader on its way may have seen it otherwise. */
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

/** RFC 9110, section 7.2: a host, by name or address, and a port. An empty one is allowed. */
const HOST = /^[A-Za-z0-9._~%!$&'()*+,;=[\]:-]*$/;

function pathOf(request: FastifyRequest): string {
  const [path = ''] = request.url.split('?', 1);
  return path;
}
