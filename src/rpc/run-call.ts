import { Code, type Interceptor } from '@connectrpc/connect';
import type { Logger } from 'pino';
import { isRequestId } from '../../common/request-id.ts';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { Refusal } from '../domain/refusal.ts';
import { type Call, callOf } from './call.ts';
import { callerOf, refuseOtherStudios } from './caller-access.ts';
import type { CallObserver } from './observation.ts';
import { connectErrorOf } from './refusals.ts';

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
      if (thrown instanceof Refusal) finish?.(thrown.reason, thrown.metadata);
      else finish?.(nameOf(error.code), {});
      throw error;
    }
  };
}

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
        refuseOtherStudios(caller, request.message);
        return next(request);
      },
      ({ message }) => message,
    );
  };
}
