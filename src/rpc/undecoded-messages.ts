import {
  Code,
  ConnectError,
  createContextKey,
  type HandlerContext,
  type Interceptor,
  type StreamRequest,
} from '@connectrpc/connect';
import { Refusal } from '../domain/refusal.ts';
import { callOf } from './call.ts';
import { callerIfAny } from './caller-access.ts';
import { type RunCall, refused } from './observation.ts';
import { connectErrorOf } from './refusals.ts';

/** How far a call has come in the library, which refuses some calls before it asks anything of us. */
interface Progress {
  isAtGate: boolean;
  isDecoded: boolean;
  /** Aborted when the caller disconnects. */
  readonly disconnected: AbortSignal;
}

export const progressKey = createContextKey<Progress>(
  { isAtGate: true, isDecoded: true, disconnected: new AbortController().signal },
  { description: 'progress' },
);

/** Refuses calls whose message cannot be decoded as INVALID_REQUEST: to the library they are internal errors, and clients would repeat them. */
export function refuseUndecoded(run: RunCall) {
  return { gate, interceptor };

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
      const progress = request.contextValues.get(progressKey);
      progress.isDecoded = true;
      return next(request.stream ? { ...request, message: decoded(request, progress) } : request);
    };
  }

  async function* decoded({ message, method, header, contextValues }: StreamRequest, progress: Progress) {
    try {
      yield* message;
    } catch (error) {
      const refusal = refusalOfMessage(error, progress);
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
