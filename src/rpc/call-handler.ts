import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { DescMethod } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ContextValues,
  createConnectRouter,
  createContextKey,
  type HandlerContext,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
} from '@connectrpc/connect';
import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node';
import type { Logger } from 'pino';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { ExchangeService } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { Refusal } from '../domain/refusal.ts';
import { admitKnownCallers, callerIfAny, callerOf, refuseOtherStudios } from './callers.ts';
import { exchangeServer, isOfGateway, type ServedExchange } from './exchange-stream.ts';
import { callOf, type RunCall, refused } from './observation.ts';
import { accessWithdrawn, connectErrorOf, unauthenticated } from './refusals.ts';
import { takeUntil } from './take-until.ts';

/** A request and its response, over HTTP/1.1 or HTTP/2. */
export type Request = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;

/** Serves the call of a request. Never rejects. @param values the caller of the call, and the state of its connection */
export type ServeCall = (request: Request, response: Response, values: ContextValues) => Promise<void>;

interface ServedMethods {
  readonly routes: (router: ConnectRouter) => void;
  readonly exchange: ServedExchange;
  /** Returns the maximum deadline of a method; milliseconds. */
  readonly maxTimeoutMsOf: (method: DescMethod) => number;
  /** The maximum size of a message, unless the method has another one; bytes. */
  readonly readMaxBytes: number;
}

/** How far a call has come in the library, which refuses some calls before it asks anything of us. */
interface Progress {
  isAtGate: boolean;
  isDecoded: boolean;
  /** Aborted when the caller disconnects. */
  readonly disconnected: AbortSignal;
}

const progressKey = createContextKey<Progress>(
  { isAtGate: true, isDecoded: true, disconnected: new AbortController().signal },
  { description: 'progress' },
);

/** What is wrong with a call that no method serves, by the HTTP status. */
const UNSERVED: Readonly<Record<number, string>> = {
  405: 'The method of HTTP must be POST.',
  415: 'The content type must be one of gRPC, gRPC-Web or Connect, and of the kind of the method.',
  505: 'The method needs HTTP/2.',
};

/** Returns the path of a request without its query. CONNECT has none. */
export const pathOf = ({ url }: { readonly url?: string | undefined }): string => url?.split('?', 1)[0] ?? '';

/**
 * Returns a function that serves calls by gRPC, gRPC-Web and Connect. Each call but those of probes is logged and
 * counted, also one that the library refuses by itself.
 */
export function callHandler(
  { routes, exchange, maxTimeoutMsOf, readMaxBytes }: ServedMethods,
  run: RunCall,
  log: Logger,
): ServeCall {
  const admit = admitKnownCallers(run);
  const undecoded = refuseUndecoded(run);
  const requestGate = async (context: HandlerContext) => {
    context.values.get(progressKey).isAtGate = true;
    await admit(context);
    undecoded.gate(context);
  };
  const router = createConnectRouter({
    requestGate,
    interceptors: [undecoded.interceptor, endWithdrawn, runCalls(run)],
    acceptCompression: [compressionGzip, compressionBrotli],
    readMaxBytes,
  });
  routes(router);
  const serveExchange = exchangeServer(exchange, { gate: requestGate, readable: undecoded.messages });
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  return async (request, response, values) => {
    try {
      const handler = handlers.get(pathOf(request));
      if (!handler) return await answerUnserved(request, response, values, 404);
      // Of the others no cache keeps an answer.
      if (request.method === 'GET') response.setHeader('cache-control', 'no-store');
      // The library makes a URL of the authority, which not every client's is fit for. It matters to no call.
      request.headers[request.httpVersionMajor === 2 ? ':authority' : 'host'] = 'core';
      const call = universalRequestFromNodeRequest(request, response, undefined, values);
      const progress = { isAtGate: false, isDecoded: false, disconnected: call.signal };
      values.set(progressKey, progress);
      clampTimeout(call.header, maxTimeoutMsOf(handler.method));
      if (handler.method === ExchangeService.method.exchange && isOfGateway(request)) {
        return await serveExchange(request, response as Http2ServerResponse, { ...call, contextValues: values });
      }
      const answer = await handler(call);
      if (progress.isAtGate) await universalResponseToNodeResponse(answer, response);
      else await answerUnserved(request, response, values, answer.status, handler.method);
    } catch (error) {
      // The caller has disconnected.
      if (response.destroyed || ConnectError.from(error).code === Code.Aborted) return;
      log.error({ err: error }, 'response failed');
      response.destroy();
    }
  };

  /** Answers a call that no method serves, in the caller's protocol. */
  async function answerUnserved(
    request: Request,
    response: Response,
    values: ContextValues,
    status: number,
    method?: DescMethod,
  ): Promise<void> {
    const caller = callerIfAny({ values });
    const known = UNSERVED[status];
    const refusal = !caller
      ? unauthenticated()
      : known
        ? new Refusal('INVALID_REQUEST', known)
        : new ConnectError('unknown method', Code.Unimplemented);
    const error = await refused(run, callOf(method, tracingOf(request), caller), refusal);
    const { 'content-type': type = '' } = request.headers;
    if ('stream' in response && type.startsWith('application/grpc')) {
      // To a gRPC client, a plain 404 is a transport failure. The headers end the stream, so they are the trailers too.
      const trailers = Object.fromEntries(setTrailerStatus(new Headers(), error));
      response.stream.respond({ 'content-type': 'application/grpc', ...trailers }, { endStream: true });
      return;
    }
    response.statusCode = caller ? status : 401;
    response.setHeader('content-type', 'application/json');
    (response as ServerResponse).end(errorToJsonBytes(error, undefined));
  }
}

/** Returns the headers of a request that are logged and traced. */
const tracingOf = ({ headers }: Request): Headers =>
  new Headers(
    ['x-request-id', 'traceparent'].flatMap((name) => {
      const value = headers[name];
      return typeof value === 'string' ? [[name, value] as [string, string]] : [];
    }),
  );

const UNIT_MS = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/** Shortens the deadline of a call to the maximum. The library refuses one that cannot be parsed. */
function clampTimeout(header: Headers, maxMs: number): void {
  const [, count, unit] = /^(\d{1,8})([HMSmun])$/.exec(header.get('grpc-timeout') ?? '') ?? [];
  if (Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS] > maxMs) header.set('grpc-timeout', `${maxMs}m`);
  const connectMs = header.get('connect-timeout-ms') ?? '';
  if (/^\d{1,10}$/.test(connectMs) && Number(connectMs) > maxMs) header.set('connect-timeout-ms', `${maxMs}`);
}

/** Executes unary calls with `run`. Streams use it per item or by themselves; probes are not logged. */
function runCalls(run: RunCall): Interceptor {
  return (next) => (request) => {
    if (request.stream || request.service.typeName === Health.typeName) return next(request);
    const caller = callerOf({ values: request.contextValues });
    const call = { ...callOf(request.method, request.header, caller), request: request.message };
    return run(
      call,
      async () => {
        // The caller may have lost its access since the head of the call arrived.
        if (caller.withdrawn.aborted) throw accessWithdrawn();
        refuseOtherStudios(caller, request.message);
        return next(request);
      },
      ({ message }) => message,
    );
  };
}

/**
 * Ends streams whose caller loses its access, whatever they are. Of a caller that sends, no further message is read; the
 * results of those before arrive.
 */
const endWithdrawn: Interceptor = (next) => async (request) => {
  const caller = callerIfAny({ values: request.contextValues });
  if (!request.stream || !caller) return next(request);
  const { withdrawn } = caller;
  if (request.method.methodKind !== 'server_streaming') {
    return next({ ...request, message: takeUntil(withdrawn, request.message) });
  }
  const { message, ...response } = (await next(request)) as StreamResponse;
  return { ...response, message: messages() };

  async function* messages() {
    yield* takeUntil(withdrawn, message);
    // A watch has no end that could be missing, so it just ends: its caller may have another token by now.
    if (withdrawn.aborted && !request.method.name.startsWith('Watch')) throw connectErrorOf(accessWithdrawn());
  }
};

/** The messages of a stream, and the call that they belong to. */
type Sent<Message> = Pick<StreamRequest, 'method' | 'header' | 'contextValues'> & {
  readonly message: AsyncIterable<Message>;
};

function refuseUndecoded(run: RunCall) {
  return { gate, interceptor, messages };

  /**
   * Refuses unary calls whose message cannot be decoded as INVALID_REQUEST: to the library they are internal errors, and
   * clients would repeat them. It decodes after the gate and before the interceptors, and aborts the context with the
   * error before it sends it: the one place at which the error can be replaced.
   */
  function gate({ values, signal, method, requestHeader }: HandlerContext): void {
    signal.addEventListener('abort', () => {
      const progress = values.get(progressKey);
      const refusal = method.methodKind === 'unary' && !progress.isDecoded && refusalOfMessage(signal.reason, progress);
      if (!refusal) return;
      void refused(run, callOf(method, requestHeader, callerIfAny({ values })), refusal);
      const { code, rawMessage, details, metadata } = connectErrorOf(refusal);
      // With what the library recognises one of its errors by; a fault of base64 is none.
      const marks = { name: 'ConnectError', cause: undefined, isWireError: false };
      Object.assign(signal.reason, { code, rawMessage, details, metadata, ...marks });
    });
  }

  /** Refuses streams in the same way; the interceptors get their messages undecoded. */
  function interceptor(next: Parameters<Interceptor>[0]): ReturnType<Interceptor> {
    return (request) => {
      request.contextValues.get(progressKey).isDecoded = true;
      return next(request.stream ? { ...request, message: messages(request) } : request);
    };
  }

  async function* messages<Message>({ message, method, header, contextValues }: Sent<Message>) {
    try {
      yield* message;
    } catch (error) {
      const refusal = refusalOfMessage(error, contextValues.get(progressKey));
      if (!refusal) throw error;
      throw await refused(run, callOf(method, header, callerIfAny({ values: contextValues })), refusal);
    }
  }
}

/** Returns the refusal of a message that the library could not decode; undefined: the error has another cause. */
function refusalOfMessage(error: unknown, { disconnected }: Progress): Refusal | undefined {
  if (disconnected.aborted || !(error instanceof Error)) return undefined;
  const { code, rawMessage } = ConnectError.from(error);
  if (code === Code.Canceled || code === Code.DeadlineExceeded) return undefined;
  return new Refusal('INVALID_REQUEST', `The message cannot be read: ${rawMessage}.`);
}
