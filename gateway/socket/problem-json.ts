import { METHODS, type RequestListener, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { BROKEN_ENCODING } from '../address-fault.ts';
import { type RequestObserver, unknownRequest } from '../observation.ts';
import { unknownMethod } from '../operations/allowed-methods.ts';
import { HEADERS_TOO_LARGE, invalidRequest, PROBLEM_MEDIA_TYPE, Problem, problemBody, TOO_SLOW } from '../problems.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../request-id.ts';
import { RequestState } from '../request-state.ts';
import type { ClientConnections } from './connections.ts';

/** Answers every error of a request as problem+json. */
export function answerProblems(app: FastifyInstance, publicUrl: string): void {
  app.setErrorHandler((error: FastifyError, request, reply) => {
    sendProblem(problemOf(error, request), request, reply, publicUrl);
  });
  app.setNotFoundHandler(() => {
    throw new Problem('route_not_found');
  });
}

/** Answers an error of the router, which occurs before a route is known. */
export function answerFrameworkErrors(publicUrl: string, observe: RequestObserver | undefined) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    const problem = problemOf(error, request);
    // Hooks, which would set the state and observe the request, do not run for it.
    request.state = new RequestState();
    observe?.(unknownRequest(request.id, problem.status, problem.code));
    sendProblem(problem, request, reply, publicUrl);
  };
}

/**
 * Refuses requests with a valid head whose body is malformed or late. The head has been acted on: the request has an id,
 * and is or will be counted. So it is answered in the order of checks, with its headers, like one with any other fault.
 */
export function refuseFaultyBodies(app: FastifyInstance, connections: ClientConnections): void {
  app.addHook('preParsing', (request, _reply, payload, done) => {
    done(connections.faultOf(request.raw) ?? null, payload);
  });
  // An operation that ignores the body may have begun.
  app.addHook('onSend', (request, _reply, payload, done) => {
    const fault = request.state.problemCode === undefined && connections.faultOf(request.raw);
    if (fault) done(fault);
    else done(null, payload);
  });
}

/** Answers the requests that Node would otherwise answer without the framework. */
export function answerServerErrors(
  server: Server,
  connections: ClientConnections,
  publicUrl: string,
  observe: RequestObserver | undefined,
): void {
  const refuseExpectation = refuseWith(EXPECTATION, publicUrl, observe);
  server.on('checkExpectation', (request, response) => connections.serve(request, response, refuseExpectation));
  server.on('connect', (request, socket) => {
    const problem = new Problem('route_not_found');
    const answer = () => answerAndClose(problem, requestIdOf(request), socket as Socket, publicUrl, observe);
    connections.refuse(socket as Socket, problem, answer);
  });
}

/** Refuses the requests of RTSP that Node's parser lets pass: their methods are none to the router. */
export function onlyHttp(
  handler: RequestListener,
  publicUrl: string,
  observe: RequestObserver | undefined,
): RequestListener {
  const methods = new Set<string | undefined>(METHODS);
  const refuse = refuseWith(MALFORMED, publicUrl, observe);
  return (request, response) => (methods.has(request.method) ? handler : refuse)(request, response);
}

/** Answers a request that does not reach the framework, and ends its connection. */
function refuseWith(problem: Problem, publicUrl: string, observe: RequestObserver | undefined): RequestListener {
  return (request, response) => {
    const requestId = requestIdOf(request);
    observe?.(unknownRequest(requestId, problem.status, problem.code));
    const body = problemBody(problem, requestId, publicUrl);
    // The length, too: HTTP/1.0 has no chunks.
    const length = { 'content-length': Buffer.byteLength(body) };
    response.writeHead(problem.status, { ...headersOf(problem, requestId), ...length, connection: 'close' });
    response.end(body);
  };
}

const EXPECTATION = invalidRequest([{ field: 'Expect', message: 'must be 100-continue' }]);

// @rule 7.no-http
const SOCKET_FAULTS: Readonly<Record<string, Problem>> = {
  HPE_HEADER_OVERFLOW: HEADERS_TOO_LARGE,
  ERR_HTTP_REQUEST_TIMEOUT: TOO_SLOW,
};
const MALFORMED = invalidRequest([], 'The request is not valid HTTP.');

/** Answers input that is not valid HTTP, or is not completed in time. */
export function answerClientErrors(
  app: () => Pick<FastifyInstance, 'allowedMethods'>,
  connections: ClientConnections,
  publicUrl: string,
  observe: RequestObserver | undefined,
) {
  return (error: NodeJS.ErrnoException, socket: Socket): void => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const head = headWithUnknownMethod(error);
    const problem = head ? unknownMethod(app(), head.url) : (SOCKET_FAULTS[error.code ?? ''] ?? MALFORMED);
    connections.refuse(socket, problem, (request) =>
      answerAndClose(problem, requestIdOf(head ?? request ?? { headers: {} }), socket, publicUrl, observe),
    );
  };
}

/** What Node's parser reports besides the code: the bytes that it got, and how many of them it has read. */
interface ParserError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
}

/** The errors of Node's parser for a method that it does not know, for those of RTSP, and for PRI. */
const METHOD_FAULTS = new Set(['HPE_INVALID_METHOD', 'HPE_INVALID_CONSTANT', 'HPE_INVALID_VERSION']);

/** A character of a method, and the rest of a first line. */
const TOKEN = /[\w!#$%&'*+.^`|~-]/;
const TARGET = /^(?:\/[!-~]*|\*|https?:\/\/[!-~]+)$/;
const VERSION = /^HTTP\/1\.[01]$/;

/**
 * Reads the address and the request id of a request whose method Node's parser does not know. No expression searches
 * the bytes, because a search that begins again at each of them takes seconds. @rule 7.method_not_allowed
 */
function headWithUnknownMethod({ code = '', rawPacket, bytesParsed = 0 }: ParserError) {
  if (!METHOD_FAULTS.has(code) || !rawPacket) return undefined;
  // PRI is refused behind its line.
  const begin = rawPacket.lastIndexOf('\n', bytesParsed - (code === 'HPE_INVALID_VERSION' ? 2 : 0)) + 1;
  const [head = ''] = rawPacket.toString('latin1', begin).split('\r\n\r\n', 1);
  const [line = '', ...headers] = head.split('\r\n');
  const [version = '', url = '', ...words] = line.split(' ').reverse();
  // The body of the request before may precede the method.
  const end = line.length - version.length - url.length - 2;
  let start = end;
  while (start > 0 && TOKEN.test(line.charAt(start - 1))) start -= 1;
  if (words.length === 0 || start === end || !TARGET.test(url) || !VERSION.test(version)) return undefined;
  // Behind what was read, it would not be what the parser has refused.
  if (begin + start > bytesParsed) return undefined;
  const requestId = headers.find((each) => each.toLowerCase().startsWith(`${REQUEST_ID_HEADER}:`));
  return { url, headers: { [REQUEST_ID_HEADER]: requestId?.slice(REQUEST_ID_HEADER.length + 1).trim() } };
}

// @rule 2.5.discreet 7.2
function problemOf(error: FastifyError, request: FastifyRequest): Problem {
  if (error instanceof Problem) {
    if (error.status >= 500 && !error.isLogged)
      request.log.error({ err: error, requestId: request.id }, 'a request failed');
    return error;
  }
  if (error.code === 'FST_ERR_BAD_URL') return BROKEN_ENCODING;
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500) return invalidRequest([]);
  request.log.error({ err: error, requestId: request.id }, 'a request failed');
  return new Problem('internal_error');
}

function sendProblem(problem: Problem, request: FastifyRequest, reply: FastifyReply, publicUrl: string): void {
  const { state } = request;
  state.problemCode = problem.code;
  state.leadId ??= problem.existingLeadId;
  reply.code(problem.status).headers(headersOf(problem, request.id));
  // As bytes, because the framework adds a charset, which JSON does not have, to the media type of a string.
  reply.send(Buffer.from(problemBody(problem, request.id, publicUrl)));
}

// @rule 1.media-types 7.no-store
function headersOf(problem: Problem, requestId: string): Record<string, string> {
  return {
    ...problem.headers,
    'content-type': PROBLEM_MEDIA_TYPE,
    'cache-control': 'no-store',
    [REQUEST_ID_HEADER]: requestId,
  };
}

function answerAndClose(
  problem: Problem,
  requestId: string,
  socket: Socket,
  publicUrl: string,
  observe: RequestObserver | undefined,
): void {
  observe?.(unknownRequest(requestId, problem.status, problem.code));
  const body = problemBody(problem, requestId, publicUrl);
  const headers = { ...headersOf(problem, requestId), 'content-length': Buffer.byteLength(body), connection: 'close' };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  // Destroyed, because an ended socket would stay half open until the client closes it.
  socket.write(`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n${body}`, () =>
    socket.destroy(),
  );
}
