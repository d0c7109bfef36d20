import { Code, type ConnectError, type Interceptor, type StreamResponse } from '@connectrpc/connect';
import type { Logger } from 'pino';
import { isRequestId } from '../../common/request-id.ts';
import { ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { Refusal } from '../domain/refusal.ts';
import { type Call, callOf } from './call.ts';
import { accessWithdrawn, callerIfAny, callerOf, refuseOtherStudios } from './caller-access.ts';
import type { CallObserver } from './observation.ts';
import { connectErrorOf } from './refusals.ts';
import { takeUntil } from './take-until.ts';

/** Executes a call and observes it. Rejects with the error that the caller gets; the text of a fault is only logged. */
export type RunCall = <Response extends object>(
  call: Call,
  body: () => Promise<Response>,
  messageOf?: (response: Response) => object,
) => Promise<Response>;

export function callRunner(log: Logger, observer: CallObserver | undefined): RunCall {
  return async (call, body, messageOf = (response) => response) => {
    const { operation } = call;
    const requestId = isRequestId(call.requestId) ? call.requestId : undefined;
    const observed = observer?.({ ...call, requestId });
    const finish = observed?.finish;
    try {
      const response = await (observed?.during ? observed.during(body) : body());
      finish?.('ok', messageOf(response));
      return response;
    } catch (thrown) {
      const error = connectErrorOf(thrown);
      const isFault = error !== thrown && !(thrown instanceof Refusal);
      if (isFault) log.error({ err: thrown, operation, requestId }, 'call failed');
      const [info] = error.findDetails(ErrorInfoSchema);
      finish?.(info?.reason ?? nameOf(error.code), info?.metadata ?? {});
      throw error;
    }
  };
}

/** Logs and counts a refused call, and returns the error that its caller gets. */
export const refused = (run: RunCall, call: Call, refusal: Refusal | ConnectError): Promise<ConnectError> =>
  run<never>(call, () => Promise.reject(refusal)).catch((error) => error);

/** Returns the name of a status in logs and metrics, as gRPC writes it: `INVALID_ARGUMENT`. */
const nameOf = (code: Code): string => Code[code].replace(/\B[A-Z]/g, '_$&').toUpperCase();

/** Executes unary calls with `run`. Streams use it per item or by themselves; probes are not logged. */
export function runCalls(run: RunCall): Interceptor {
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
export const endWithdrawn: Interceptor = (next) => async (request) => {
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
