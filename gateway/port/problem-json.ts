import { type RequestListener, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type RequestObserver, unknownRequest } from '../observation.ts';
import { HEADERS_TOO_LARGE, invalidRequest, PROBLEM_MEDIA_TYPE, Problem, problemBody, TOO_SLOW } from '../problems.ts';
import { BROKEN_ENCODING, chooseRequestId, REQUEST_ID_HEADER, RequestState } from '../request.ts';
import { type AllowedMethods, routeProblem } from '../routes/allowed-methods.ts';
import type { ClientConnections } from './connections.ts';

const EXPECTATION = invalidRequest([{ field: 'Expect', message: 'must be 100-continue' }]);

// @rule 7.no-http
const SOCKET_FAULTS: Readonly<Record<string, Problem>> = {
  HPE_HEADER_OVERFLOW: HEADERS_TOO_LARGE,
  ERR_HTTP_REQUEST_TIMEOUT: TOO_SLOW,
};
const MALFORMED = invalidRequest([], 'The request is not valid HTTP.');

/** Answers failures as problem+json: within the framework, before it, and outside of it. */
export class ProblemAnswers {
  readonly #publicUrl: string;
  readonly #observe: RequestObserver | undefined;

  constructor(publicUrl: string, observe: RequestObserver | undefined) {
    this.#publicUrl = publicUrl;
    this.#observe = observe;
  }

  setErrorHandlers(app: FastifyInstance): void {
    app.setErrorHandler((error: FastifyError, request, reply) => {
      this.#send(toProblem(error, request), request, reply);
    });
    app.setNotFoundHandler(() => {
      throw new Problem('route_not_found');
    });
  }

  /** Answers an error of the router, which occurs before a route is known. No hook runs for such a request. */
  readonly answerFrameworkError = (error: FastifyError, request: FastifyRequest, reply: FastifyReply): void => {
    const problem = toProblem(error, request);
    request.state = new RequestState();
    reply.header('connection', 'close');
    this.#observe?.(unknownRequest(request.id, problem));
    this.#send(problem, request, reply);
  };

  /** Answers a request that is not HTTP. */
  readonly answerMalformed = this.#refuseWith(MALFORMED);

  /** Answers requests that Node would otherwise answer without the framework. */
  listenToServer(server: Server, connections: ClientConnections): void {
    const refuseExpectation = this.#refuseWith(EXPECTATION);
    server.on('checkExpectation', (request, response) => connections.serve(request, response, refuseExpectation));
    server.on('connect', (request, socket) => {
      const problem = new Problem('route_not_found');
      connections.refuse(socket as Socket, problem, () =>
        this.#answerAndClose(problem, chooseRequestId(request), socket as Socket),
      );
    });
  }

  /** Returns a handler that answers input that is not valid HTTP, or does not arrive in time. */
  clientErrorHandler(findAllowed: () => AllowedMethods, connections: ClientConnections) {
    return (error: NodeJS.ErrnoException, socket: Socket): void => {
      if (error.code === 'ECONNRESET' || !socket.writable) {
        socket.destroy();
        return;
      }
      const head = headWithUnknownMethod(error);
      const problem = head ? routeProblem(findAllowed(), head.url) : (SOCKET_FAULTS[error.code ?? ''] ?? MALFORMED);
      connections.refuse(socket, problem, (request) =>
        this.#answerAndClose(problem, chooseRequestId(head ?? request ?? { headers: {} }), socket),
      );
    };
  }

  #send(problem: Problem, request: FastifyRequest, reply: FastifyReply): void {
    const { state } = request;
    state.problemCode = problem.code;
    state.faults = problem.faults;
    state.leadId ??= problem.existingLeadId;
    reply.code(problem.status).headers(createProblemHeaders(problem, request.id));
    // Sent as bytes: for a string, the framework adds a charset to the media type, which JSON does not have.
    reply.send(Buffer.from(problemBody(problem, request.id, this.#publicUrl)));
  }

  /** Returns a handler that answers a request outside the framework, and ends its connection. */
  #refuseWith(problem: Problem): RequestListener {
    return (request, response) => {
      const { headers, body } = this.#lastAnswer(problem, chooseRequestId(request));
      response.writeHead(problem.status, headers).end(body);
    };
  }

  #answerAndClose(problem: Problem, requestId: string, socket: Socket): void {
    const { headers, body } = this.#lastAnswer(problem, requestId);
    const lines = Object.entries({ ...headers, date: new Date().toUTCString() }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    socket.write(`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n${body}`);
    socket.destroySoon();
  }

  /** Observes a request outside the framework, and returns its answer, the last of the connection. */
  #lastAnswer(problem: Problem, requestId: string) {
    this.#observe?.(unknownRequest(requestId, problem));
    const body = problemBody(problem, requestId, this.#publicUrl);
    // The length is required, because HTTP/1.0 has no chunks.
    const length = { 'content-length': Buffer.byteLength(body) };
    return { headers: { ...createProblemHeaders(problem, requestId), ...length, connection: 'close' }, body };
  }
}

/** A parser error of Node, with the bytes that it got and how many of them it has read. */
interface ParserError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
}

/** Parser errors for an unknown method, for RTSP methods, and for PRI. */
const METHOD_FAULTS = new Set(['HPE_INVALID_METHOD', 'HPE_INVALID_CONSTANT', 'HPE_INVALID_VERSION']);

/** Patterns for a character of a method, and for the rest of a first line. */
const TOKEN = /[\w!#$%&'*+.^`|~-]/;
const TARGET = /^(?:\/[!-~]*|\*|https?:\/\/[!-~]+)$/;
const VERSION = /^HTTP\/1\.[01]$/;

/**
 * Reads the address and the request id of a request whose method Node's parser does not know. It uses no regular expression on all bytes: a
 * search that restarts at each byte takes seconds. @rule 7.method_not_allowed
 */
function headWithUnknownMethod({ code = '', rawPacket, bytesParsed = 0 }: ParserError) {
  if (!METHOD_FAULTS.has(code) || !rawPacket) return undefined;
  // The parser refuses PRI only after its line.
  const begin = rawPacket.lastIndexOf('\n', bytesParsed - (code === 'HPE_INVALID_VERSION' ? 2 : 0)) + 1;
  const [head = ''] = rawPacket.toString('latin1', begin).split('\r\n\r\n', 1);
  const [line = '', ...headers] = head.split('\r\n');
  const [version = '', url = '', ...words] = line.split(' ').reverse();
  // The previous request's body may precede the method.
  const end = line.length - version.length - url.length - 2;
  let start = end;
  while (start > 0 && TOKEN.test(line.charAt(start - 1))) start -= 1;
  if (words.length === 0 || start === end || !TARGET.test(url) || !VERSION.test(version)) return undefined;
  // The parser has not reached this method, so it refused something before it.
  if (begin + start > bytesParsed) return undefined;
  const requestId = headers.find((line) => line.toLowerCase().startsWith(`${REQUEST_ID_HEADER}:`));
  return { url, headers: { [REQUEST_ID_HEADER]: requestId?.slice(REQUEST_ID_HEADER.length + 1).trim() } };
}

// @rule 2.5.discreet 7.2
function toProblem(error: FastifyError, request: FastifyRequest): Problem {
  if (error instanceof Problem) {
    if (error.status >= 500 && !error.isLogged)
      request.log.error({ err: error, requestId: request.id }, 'a request failed');
    return error;
  }
  if (error.code === 'FST_ERR_BAD_URL') return BROKEN_ENCODING;
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500) return invalidRequest([]);
  // A client that disconnects aborts the file being sent to it, which is no failure of ours.
  const hasLeft = error.code === 'ERR_STREAM_PREMATURE_CLOSE' && request.raw.socket.destroyed;
  if (!hasLeft) request.log.error({ err: error, requestId: request.id }, 'a request failed');
  return new Problem('internal_error');
}

// @rule 1.media-types 7.no-store
function createProblemHeaders(problem: Problem, requestId: string): Record<string, string> {
  return {
    ...problem.headers,
    'content-type': PROBLEM_MEDIA_TYPE,
    'cache-control': 'no-store',
    [REQUEST_ID_HEADER]: requestId,
  };
}
