import type { IncomingMessage } from 'node:http';
import { parse } from 'node:querystring';
import { Readable } from 'node:stream';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { appOptions } from '../../common/app.ts';
import { GATEWAY_AFTER_CLOSE_MS, LAST_ANSWER_MS } from '../../common/deadlines.ts';
import { headerValues } from '../../common/header-values.ts';
import type { Tracer } from '../../common/tracing.ts';
import { admitCallers } from '../admission/admission.ts';
import { clientAddresses } from '../client-address.ts';
import { arrivalObserver, type ObserveRequest, type RecordRequest, requestObserver } from '../observation.ts';
import { type FaultyField, invalidRequest, Problem } from '../problems.ts';
import { addressFault, chooseRequestId, FRAGMENT, REQUEST_ID_HEADER, RequestState } from '../request.ts';
import { registerAllMethods, routeProblem } from '../routes/allowed-methods.ts';
import { docsRoutes } from '../routes/docs.ts';
import { healthRoutes } from '../routes/health.ts';
import { leadRoutes } from '../routes/leads.ts';
import { ClientConnections } from './connections.ts';
import { ProblemAnswers } from './problem-json.ts';
import { createHttpServer } from './server.ts';

/** The maximum number of query parameters that are read. Further ones are ignored. */
const MAX_PARAMETERS = 100;

/** The maximum size of a body; bytes. The largest valid one, fully escaped, takes about 29 KB. @rule 4.1.body */
export const MAX_BODY_BYTES = 32 * 1024;

/** The parts of the gateway that its hooks and routes take from the app. */
type Parts = Pick<FastifyInstance, 'config' | 'metrics' | 'core' | 'quota' | 'readiness'>;

/** The observers of requests, which routes do not know. */
interface ServerObservers {
  readonly log: Logger;
  readonly tracer: Tracer | undefined;
  readonly record: RecordRequest | undefined;
}

/** How long a request may take to arrive, and how long a key's owner is cached; milliseconds. */
export interface GatewayDeadlines {
  readonly requestArrivalMs: number;
  readonly keyCacheMs: number;
}

/**
 * Creates the app of the gateway. A request passes these steps in order. `connections` takes one per connection at a time; Fastify finds
 * its route; `beginRequests` observes it, and refuses invalid ones. Below /v1, `admitCallers` checks load, key, scope and quota. The route
 * reads its body, and calls the core. `ProblemAnswers` answers whatever is refused on the way.
 */
export function createGatewayServer(
  parts: Parts,
  { log, tracer, record }: ServerObservers,
  { requestArrivalMs, keyCacheMs }: GatewayDeadlines,
): FastifyInstance {
  const { config, metrics } = parts;
  const observe = requestObserver(log, metrics);
  const problems = new ProblemAnswers(config.PUBLIC_URL, observe);
  const connections = new ClientConnections(log, { arrivalMs: requestArrivalMs });
  const app: FastifyInstance = fastify({
    ...appOptions(log),
    genReqId: chooseRequestId,
    bodyLimit: MAX_BODY_BYTES,
    serverFactory: (handler) => createHttpServer(connections, handler, problems.answerMalformed),
    routerOptions: {
      maxParamLength: 64 * 1024,
      querystringParser: (query) => parse(query, undefined, undefined, { maxKeys: MAX_PARAMETERS }),
    },
    ajv: { customOptions: { removeAdditional: false, coerceTypes: false, useDefaults: false, allErrors: true } },
    frameworkErrors: problems.answerFrameworkError,
    clientErrorHandler: problems.clientErrorHandler(() => app.allowedMethods, connections),
  }) as unknown as FastifyInstance;
  for (const [name, part] of Object.entries(parts)) app.decorate(name, part as never);
  const readClientAddress = clientAddresses(config.TRUSTED_PROXIES, log);
  app.decorateRequest('clientAddress', {
    getter() {
      return readClientAddress(this);
    },
  });
  registerAllMethods(app);
  beginRequests(app, connections, arrivalObserver({ observe, record, metrics, tracer }, config.LOG_CLIENT_ADDRESSES));
  problems.listenToServer(app.server, connections);
  problems.setErrorHandlers(app);
  endConnections(app, connections);

  healthRoutes(app);
  docsRoutes(app);
  app.register(async (v1) => {
    admitCallers(v1, keyCacheMs);
    leadRoutes(v1);
  });
  return app;
}

/** Waits at most GATEWAY_AFTER_CLOSE_MS for the answers to all accepted requests when the app closes. */
function endConnections(app: FastifyInstance, connections: ClientConnections): void {
  let timers: NodeJS.Timeout[] = [];
  app.addHook('preClose', async () => {
    timers = [
      setTimeout(() => connections.endArriving(app.server), GATEWAY_AFTER_CLOSE_MS - LAST_ANSWER_MS),
      setTimeout(() => connections.closeAll(), GATEWAY_AFTER_CLOSE_MS),
    ];
  });
  app.addHook('onClose', async () => timers.forEach(clearTimeout));
}

/**
 * Begins and ends every request: creates its state, sets the headers of every response, and starts its observation. Refuses ambiguous HTTP,
 * unknown paths, and malformed or late bodies. A request with such a body has an id, and is or will be counted. So the fault is answered in
 * the order of checks, like any other.
 */
function beginRequests(
  app: FastifyInstance,
  connections: ClientConnections,
  observe: ObserveRequest | undefined,
): void {
  const { isStopping } = app.readiness;
  app.decorateRequest('state');
  app.addHook('onRequest', (request, reply, done) => {
    request.state = new RequestState();
    reply.header(REQUEST_ID_HEADER, request.id);
    // @rule 7.no-store
    reply.header('cache-control', 'no-store');
    const next = () => done(findRequestProblem(request, reply));
    if (observe) observe(request, reply, next);
    else next();
  });
  app.addHook('preParsing', ({ raw, method }, _reply, payload, done) => {
    // Node has already ended the stream of a request without a body (`optimizeEmptyRequests`), so a reader would wait forever. A GET has no
    // reader.
    const isEmpty = method !== 'GET' && (payload as Readable).readableEnded;
    done(connections.findBodyFault(raw) ?? null, isEmpty ? Readable.from([]) : payload);
  });
  app.addHook('onSend', ({ state, raw }, reply, payload, done) => {
    // An operation that ignores the body may have begun before the fault came.
    const fault = state.problemCode === undefined && connections.findBodyFault(raw);
    if (fault) return done(fault);
    state.isAnswered = true;
    // Checked as late as possible, because a keep-alive connection would delay the shutdown.
    if (isStopping()) reply.header('connection', 'close');
    // The payload is text or bytes, or the stream of a file, whose length is in the header.
    const { length: characters = Number(reply.getHeader('content-length') ?? 0) } = (payload ?? {}) as {
      readonly length?: number;
    };
    connections.recordResponse(raw.socket, characters, state.key?.caller.apiKeyId);
    // Otherwise Node would read an unneeded body to its end. The length of a chunked body is not known yet.
    const { 'content-length': length, 'transfer-encoding': coding } = raw.headers;
    const isUnbounded = coding !== undefined && !raw.complete;
    if (isUnbounded || Number(length) > MAX_BODY_BYTES) reply.header('connection', 'close');
    done();
  });
}

/** @rule 7.no-http 7.route_not_found */
function findRequestProblem(request: FastifyRequest, reply: FastifyReply): Problem | undefined {
  const addressProblem = addressFault(request.url);
  const framing = addressProblem === FRAGMENT ? undefined : framingFault(request.raw);
  if (framing || addressProblem === FRAGMENT) reply.header('connection', 'close');
  if (framing) return invalidRequest([framing]);
  if (addressProblem) return addressProblem;
  // The router would take a trailing slash for an empty id.
  const hasExtraSlash = request.url.split('?', 1)[0]?.endsWith('/') && !/[/*]$/.test(request.routeOptions.url ?? '');
  if (hasExtraSlash) return new Problem('route_not_found');
  return request.is404 ? routeProblem(request.server.allowedMethods, request.url) : undefined;
}

/** Refuses ambiguous framing and hosts, which an intermediary may interpret differently (request smuggling). */
function framingFault(request: IncomingMessage): FaultyField | undefined {
  const { httpVersion, headers } = request;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return { field: 'HTTP version', message: 'must be 1.1 or 1.0' };
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) {
    return { field: 'Transfer-Encoding', message: 'must be chunked, and needs HTTP/1.1' };
  }
  const host = headerValues(request, 'host');
  if (httpVersion === '1.1' && host.length !== 1) return { field: 'Host', message: 'must be given once' };
  return host.every((value) => HOST.test(value)) ? undefined : { field: 'Host', message: 'must be a host and a port' };
}

/** RFC 9110, section 7.2: a host name or address, and a port. An empty value is allowed. */
const HOST = /^[A-Za-z0-9._~%!$&'()*+,;=[\]:-]*$/;
