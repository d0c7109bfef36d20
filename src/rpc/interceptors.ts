import {
  Code,
  ConnectError,
  createContextKey,
  type HandlerContext,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
} from '@connectrpc/connect';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { Refusal } from '../domain/refusal.ts';
import { callerIfAny, readCaller, refuseOtherStudios } from './callers.ts';
import { accessWithdrawn, toConnectError } from './refusals.ts';
import { newCall, type RunCall, refused } from './run-call.ts';
import { takeUntil } from './take-until.ts';

/** How far a call has come in the library, which refuses some calls before it asks anything of us. */
export interface Progress {
  /** Set once the call is at the gate. */
  context?: HandlerContext;
  isAdmitted: boolean;
  isDecoded: boolean;
  /** Aborted when the caller disconnects. */
  readonly disconnected: AbortSignal;
}

export const progressKey = createContextKey<Progress>(
  { isAdmitted: true, isDecoded: true, disconnected: new AbortController().signal },
  { description: 'progress' },
);

/** Executes unary calls with `run`. Streams use it per item or by themselves; probes are not logged. */
export function runCalls(run: RunCall): Interceptor {
  return (next) => (request) => {
    if (request.stream || request.service.typeName === Health.typeName) return next(request);
    const caller = readCaller({ values: request.contextValues });
    const call = { ...newCall(request.method, request.header, caller), request: request.message };
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
    if (withdrawn.aborted && !request.method.name.startsWith('Watch')) throw toConnectError(accessWithdrawn());
  }
};

/** The messages of a stream, and the call that they belong to. */
type Sent<Message> = Pick<StreamRequest, 'method' | 'header' | 'contextValues'> & {
  readonly message: AsyncIterable<Message>;
};

/** Notes which unary calls could be decoded, and refuses messages of streams that cannot: interceptors get those undecoded. */
export function refuseUndecoded(run: RunCall) {
  return { interceptor, messages };

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
      throw await refused(run, newCall(method, header, callerIfAny({ values: contextValues })), refusal);
    }
  }
}

/** Returns the refusal of a message that the library could not decode; undefined: the error has another cause. */
export function refusalOfMessage(error: unknown, { disconnected }: Progress): Refusal | undefined {
  if (disconnected.aborted || !(error instanceof Error)) return undefined;
  const { code, rawMessage } = ConnectError.from(error);
  if (code === Code.Canceled || code === Code.DeadlineExceeded) return undefined;
  return new Refusal('INVALID_REQUEST', `The message cannot be read: ${rawMessage}.`);
}
