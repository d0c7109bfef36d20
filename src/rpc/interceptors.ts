import type { DescMethod } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextKey,
  type HandlerContext,
  type Interceptor,
  type StreamResponse,
} from '@connectrpc/connect';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { Refusal } from '../domain/refusal.ts';
import { callerIfAny, readCaller, refuseOtherStudios } from './callers.ts';
import { accessWithdrawn, toConnectError } from './refusals.ts';
import { newCall, type RunCall, recordRefusal } from './run-call.ts';
import { takeUntil } from './take-until.ts';

/** The progress of a call in the library, which refuses some calls before it calls our code. */
export interface Progress {
  /** Set once the call is at the gate. */
  context?: HandlerContext;
  state: 'arrived' | 'admitted' | 'decoded';
  /** Aborts when the caller disconnects. */
  readonly disconnected: AbortSignal;
}

export const progressKey = createContextKey<Progress>(
  { state: 'decoded', disconnected: new AbortController().signal },
  { description: 'progress' },
);

/** Executes unary calls with `run`. Streams run per item or by themselves; probes are not logged. */
export function runCalls(run: RunCall): Interceptor {
  return (next) => (request) => {
    if (request.stream || request.service.typeName === Health.typeName) return next(request);
    const caller = readCaller({ values: request.contextValues });
    const call = { ...newCall(request.method, request.header, caller), request: request.message };
    return run(
      call,
      async () => {
        // The caller may have lost its access since the call's headers arrived.
        if (caller.withdrawn.aborted) throw accessWithdrawn();
        refuseOtherStudios(caller, request.message);
        return next(request);
      },
      ({ message }) => message,
    );
  };
}

/**
 * Ends streams of any kind whose caller loses its access. No further message is read from a sending caller, but it gets
 * the results of earlier messages.
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
    // A watch just ends, because it has no last message to miss. Its caller may have another token by now.
    if (withdrawn.aborted && !request.method.name.startsWith('Watch')) throw toConnectError(accessWithdrawn());
  }
};

/** The messages of a stream, and the call to which they belong. */
export interface Sent<Message> {
  readonly method: DescMethod;
  readonly header: Headers;
  readonly contextValues: ContextValues;
  readonly message: AsyncIterable<Message>;
}

/** Notes which unary calls were decoded. Refuses undecodable messages of streams, which interceptors get before decoding. */
export function refuseUndecoded(run: RunCall) {
  const interceptor: Interceptor = (next) => (request) => {
    request.contextValues.get(progressKey).state = 'decoded';
    return next(request.stream ? { ...request, message: messages(request) } : request);
  };
  return { interceptor, messages };

  async function* messages<Message>({ message, method, header, contextValues }: Sent<Message>) {
    try {
      yield* message;
    } catch (error) {
      const refusal = refusalOfMessage(error, contextValues.get(progressKey));
      if (!refusal) throw error;
      throw await recordRefusal(run, newCall(method, header, callerIfAny({ values: contextValues })), refusal);
    }
  }
}

/** Returns the refusal for an undecodable message; undefined: the error has another cause. */
export function refusalOfMessage(error: unknown, { disconnected }: Progress): Refusal | undefined {
  if (disconnected.aborted || !(error instanceof Error)) return undefined;
  const { code, rawMessage } = ConnectError.from(error);
  if (code === Code.Canceled || code === Code.DeadlineExceeded) return undefined;
  return new Refusal('INVALID_REQUEST', `The message cannot be read: ${rawMessage}.`);
}
