import type { DescMethod } from '@bufbuild/protobuf';
import { Code, type ConnectError, createContextKey } from '@connectrpc/connect';
import type { Logger } from 'pino';
import { isRequestId } from '../../common/rules/public-api.ts';
import type { Tracer } from '../../common/tracing.ts';
import { ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import type { Caller } from '../domain/caller.ts';
import { Refusal } from '../domain/refusal.ts';
import { loggedFields, type MessageFields } from './log.ts';
import type { CoreMetrics } from './metrics.ts';
import { toConnectError } from './refusals.ts';

/** A call, or an item of one, as logged, counted and traced. */
export interface Call {
  /** The method's name; outside of `leadintake.v1`, preceded by the service's. */
  readonly operation: string;
  /** The caller's id of the request; logged only if valid. */
  readonly requestId: string | undefined;
  /** The message; undefined: not read. */
  readonly request: object | undefined;
  /** The W3C `traceparent`, if the caller sent one. */
  readonly traceparent: string | undefined;
  /** Undefined: not authenticated. */
  readonly caller: Caller | undefined;
}

/** Returns a call from its method and headers, without its message. @param method undefined: no method of this service */
export function newCall(method: DescMethod | undefined, header: Headers, caller: Caller | undefined): Call {
  return {
    operation: method ? formatOperation(method) : 'other',
    requestId: header.get('x-request-id') ?? undefined,
    request: undefined,
    traceparent: header.get('traceparent') ?? undefined,
    caller,
  };
}

function formatOperation({ parent, name }: DescMethod): string {
  return parent.file.proto.package === 'leadintake.v1' ? name : `${parent.name}/${name}`;
}

/** Aborts when the call's connection drains. Open-ended calls then end. */
export const connectionDraining = createContextKey<AbortSignal>(new AbortController().signal, {
  description: 'aborted when the connection is drained',
});

/** The outcomes that are failures of the service. */
const FAULTS = new Set(['INTERNAL', 'UNAVAILABLE', 'UNKNOWN']);

/**
 * Executes a call, and logs, counts and traces it. Rejects with the error for the caller. The text of an internal fault
 * is only logged.
 */
export type RunCall = <Response extends object>(
  call: Call,
  body: () => Promise<Response>,
  toMessage?: (response: Response) => object,
) => Promise<Response>;

export function callRunner(log: Logger, metrics?: CoreMetrics, tracer?: Tracer): RunCall {
  const isLogged = log.isLevelEnabled('info');
  return async (
    { operation, request = {}, traceparent, caller, ...call },
    body,
    toMessage = (response) => response,
  ) => {
    const requestId = isRequestId(call.requestId) ? call.requestId : undefined;
    const began = performance.now();
    metrics?.callBegan();
    const span = tracer?.begin(operation, traceparent);
    try {
      const response = await body();
      finish('ok', toMessage(response));
      return response;
    } catch (thrown) {
      const error = toConnectError(thrown);
      const isFault = error !== thrown && !(thrown instanceof Refusal);
      if (isFault) log.error({ err: thrown, operation, requestId }, 'call failed');
      const [info] = error.findDetails(ErrorInfoSchema);
      finish(info?.reason ?? formatCode(error.code), info?.metadata ?? {});
      throw error;
    }

    /**
     * @param outcome `ok`, the reason of a refusal, or a status
     * @param response the response, or the metadata of the refusal
     */
    function finish(outcome: string, response: object): void {
      if (!isLogged && !metrics && !span?.isSent) return;
      const durationMs = Math.round((performance.now() - began) * 100) / 100;
      const logged = loggedFields(request, response);
      const { consumer }: MessageFields = request;
      metrics?.callFinished({ operation, outcome, durationMs, replayed: logged.replayed === true, consumer });
      if (caller) metrics?.callerCalled(caller);
      const attributes = { requestId, caller: caller?.name ?? undefined, operation, outcome, ...logged };
      span?.end({ failed: FAULTS.has(outcome), attributes });
      if (isLogged) log.info({ ...attributes, traceId: span?.traceId, durationMs });
    }
  };
}

/** Logs and counts a refused call, and returns the error that its caller gets. */
export const recordRefusal = (run: RunCall, call: Call, reason: Error): Promise<ConnectError> =>
  run<never>(call, () => Promise.reject(reason)).catch((error) => error);

/** Returns the name of a status in logs and metrics, spelled as in gRPC: `INVALID_ARGUMENT`. */
const formatCode = (code: Code): string => Code[code].replace(/\B[A-Z]/g, '_$&').toUpperCase();
