import { Code, type Interceptor } from '@connectrpc/connect';
import type { Logger } from 'pino';
import { isRequestId } from '../../common/request-id.ts';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { Refusal } from '../domain/refusal.ts';
import { type Call, callOf } from './call.ts';
import { callerOf, refuseOtherStudios } from './caller-access.ts';
import type { CallObserver } from './observation.ts';
import { connectErrorOf } from './refusals.ts';

/**
 * Runs what a caller asked for, and lets it be observed. Rejects with what the caller may see; the text of a fault stays in
 * the log.
 */
export type RunCall = <Answer extends object>(
  call: Call,
  body: () => Promise<Answer>,
  messageOf?: (answer: Answer) => object,
) => Promise<Answer>;

/** Runs calls on behalf of a log, and of an observer if there is one. */
export function callRunner(log: Logger, observer: CallObserver | undefined): RunCall {
  return async (call, body, messageOf = (answer) => answer) => {
    const { operation } = call;
    const requestId = isRequestId(call.requestId) ? call.requestId : undefined;
    const observed = observer?.({ ...call, requestId });
    const finish = observed?.finish;
    try {
      const answer = await (observed?.during ? observed.during(body) : body());
      finish?.('ok', messageOf(answer));
      return answer;
    } catch (thrown) {
      const error = connectErrorOf(thrown);
      const isFault = error !== thrown && !(thrown instanceof Refusal);
      if (isFault) log.error({ err: thrown, operation, requestId }, 'a call failed');
      if (thrown instanceof Refusal) finish?.(thrown.reason, thrown.metadata);
      else finish?.(CODES[error.code], {});
      throw error;
    }
  };
}

/** What the statuses are called where calls are counted. */
const CODES: Record<Code, string> = {
  [Code.Canceled]: 'CANCELED',
  [Code.Unknown]: 'UNKNOWN',
  [Code.InvalidArgument]: 'INVALID_ARGUMENT',
  [Code.DeadlineExceeded]: 'DEADLINE_EXCEEDED',
  [Code.NotFound]: 'NOT_FOUND',
  [Code.AlreadyExists]: 'ALREADY_EXISTS',
  [Code.PermissionDenied]: 'PERMISSION_DENIED',
  [Code.ResourceExhausted]: 'RESOURCE_EXHAUSTED',
  [Code.FailedPrecondition]: 'FAILED_PRECONDITION',
  [Code.Aborted]: 'ABORTED',
  [Code.OutOfRange]: 'OUT_OF_RANGE',
  [Code.Unimplemented]: 'UNIMPLEMENTED',
  [Code.Internal]: 'INTERNAL',
  [Code.Unavailable]: 'UNAVAILABLE',
  [Code.DataLoss]: 'DATA_LOSS',
  [Code.Unauthenticated]: 'UNAUTHENTICATED',
};

/** Runs every call of the server but streams, which run what they carry or themselves, and probes, of which nobody wants a line. */
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
