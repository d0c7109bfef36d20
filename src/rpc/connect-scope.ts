import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { ConnectRouter, ContextValues, HandlerContext } from '@connectrpc/connect';
import type { UniversalHandler, UniversalServerRequest } from '@connectrpc/connect/protocol';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { admitKnownCallers, callerIfAny } from './callers.ts';
import { exchangeServer, isOfGateway, type ServedExchange } from './exchange-stream.ts';
import {
  endWithdrawn,
  type Progress,
  progressKey,
  refusalOfMessage,
  refuseUndecoded,
  runCalls,
} from './interceptors.ts';
import { type Request, type Response, readPath } from './request.ts';
import { EXCHANGE_PATH, findMaxTimeoutMs } from './routes.ts';
import { newCall, type RunCall, recordRefusal } from './run-call.ts';
import { toAnswer, unserved } from './unserved.ts';

interface ServedMethods {
  readonly routes: (router: ConnectRouter) => void;
  readonly exchange: ServedExchange;
  /** The maximum size of a message, unless the method has its own; bytes. */
  readonly readMaxBytes: number;
}

/**
 * Serves all methods over gRPC, gRPC-Web and Connect: the exchange with gateways directly on its stream, the others through
 * the plugin. Every call except probes is logged and counted, including those that the library refuses by itself.
 */
export function connectScope({ routes, exchange, readMaxBytes }: ServedMethods, run: RunCall, log: Logger) {
  const admit = admitKnownCallers(run);
  const requestGate = async (context: HandlerContext) => {
    const progress = context.values.get(progressKey);
    progress.context = context;
    await admit(context);
    progress.state = 'admitted';
  };
  const { interceptor, messages } = refuseUndecoded(run);
  const serveExchange = exchangeServer(exchange, { gate: requestGate, readable: messages });
  const handlers = new Map<string, UniversalHandler>();
  const known = new WeakMap<object, ContextValues>();
  const findContextValues = (request: object) => known.get(request) as ContextValues;

  return {
    register,
    /** Sets the context values of a call: its caller, and whether its connection drains. */
    begin: (request: Request, values: ContextValues) => void known.set(request, values),
    findUnservedStatus,
    refuse,
  };

  async function register(scope: FastifyInstance): Promise<void> {
    // The library decides which content types are valid. A malformed one does not reach it.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    scope.setErrorHandler((_error, { raw }, reply) => refuse(raw, reply.hijack().raw, 415));
    scope.addHook('onRequest', ({ raw, routeOptions }, reply, done) => {
      // The library puts the authority into a URL, in which some clients' authorities are not valid. No call depends on it.
      raw.headers[raw.httpVersionMajor === 2 ? ':authority' : 'host'] = 'core';
      if (routeOptions.url !== EXCHANGE_PATH || !isOfGateway(raw)) return done();
      const response = reply.hijack().raw as unknown as Http2ServerResponse;
      startExchange(raw, response).catch((err) => {
        // The caller has disconnected.
        if (response.destroyed) return;
        log.error({ err }, 'response failed');
        response.destroy();
      });
    });
    // The plugin writes its answers by itself, and ignores failures to do so. Fastify then sends an empty answer, which a
    // client would read as a valid empty message.
    scope.addHook('onSend', async (_request, { raw }) => void raw.destroy());
    await scope.register(fastifyConnectPlugin, {
      requestGate,
      interceptors: [interceptor, endWithdrawn, runCalls(run)],
      readMaxBytes,
      contextValues: ({ raw }) => findContextValues(raw),
      routes(router) {
        routes(router);
        for (const [at, handler] of router.handlers.entries()) {
          handlers.set(handler.requestPath, handler);
          router.handlers[at] = withCorrectedAnswers(handler, run);
        }
      },
    });
  }

  async function startExchange(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    const contextValues = findContextValues(request);
    const call = universalRequestFromNodeRequest(request, response, undefined, contextValues);
    contextValues.set(progressKey, { state: 'arrived', disconnected: call.signal });
    await serveExchange(request, response, { ...call, contextValues });
  }

  /** Returns the status of a request that no method serves; undefined: a method does. Fastify alone would accept other spellings of a path. */
  function findUnservedStatus(request: Request): number | undefined {
    const handler = handlers.get(readPath(request));
    if (!handler) return 404;
    if (request.httpVersionMajor === 1 && handler.method.methodKind === 'bidi_streaming') return 505;
    return handler.allowedMethods.includes(request.method ?? '') ? undefined : 405;
  }

  /** Answers a request that no method serves. */
  async function refuse(request: Request, response: Response, status: number): Promise<void> {
    const values = findContextValues(request);
    const method = handlers.get(readPath(request))?.method;
    const answer = await unserved({ header: selectHeaders(request), values, status }, method, run);
    // Its caller may have disconnected.
    universalResponseToNodeResponse(answer, response).catch(() => response.destroy());
  }
}

/** Lets the library serve a call, but replaces its answer when it could not serve it. */
function withCorrectedAnswers(handler: UniversalHandler, run: RunCall): UniversalHandler {
  const { method } = handler;
  const serve = async (call: UniversalServerRequest) => {
    const { header } = call;
    const values = call.contextValues as ContextValues;
    const progress: Progress = { state: 'arrived', disconnected: call.signal };
    values.set(progressKey, progress);
    clampTimeout(header, findMaxTimeoutMs(method));
    // Once there is an answer, the message of a unary call has been decoded, or could not be.
    const answer = await handler(call);
    if (!progress.context) return unserved({ header, values, status: answer.status }, method, run);
    const isUndecoded = method.methodKind === 'unary' && progress.state === 'admitted';
    // The library reports unreadable messages as internal errors, which clients would retry.
    const refusal = isUndecoded && refusalOfMessage(progress.context.signal.reason, progress);
    if (refusal)
      return toAnswer(header, await recordRefusal(run, newCall(method, header, callerIfAny({ values })), refusal));
    // Only GET responses are cacheable.
    if (call.method === 'GET') (answer.header as Headers).set('cache-control', 'no-store');
    return answer;
  };
  return Object.assign(serve, handler);
}

/** Returns the headers of a request that are logged and traced, and its content type. */
const selectHeaders = ({ headers }: Request): Headers =>
  new Headers(
    ['content-type', 'x-request-id', 'traceparent'].flatMap((name) => {
      const value = headers[name];
      return typeof value === 'string' ? [[name, value] as [string, string]] : [];
    }),
  );

const UNIT_MS = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/** Shortens the deadline of a call to the maximum. The library refuses an unreadable one. */
function clampTimeout(header: Headers, maxMs: number): void {
  const [, count, unit] = /^(\d{1,8})([HMSmun])$/.exec(header.get('grpc-timeout') ?? '') ?? [];
  if (Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS] > maxMs) header.set('grpc-timeout', `${maxMs}m`);
  const connectMs = header.get('connect-timeout-ms') ?? '';
  if (/^\d{1,10}$/.test(connectMs) && Number(connectMs) > maxMs) header.set('connect-timeout-ms', `${maxMs}`);
}
