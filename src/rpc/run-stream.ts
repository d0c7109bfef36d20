import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect';
import { assert } from '../../common/invariants.ts';
import type { Caller } from '../domain/caller.ts';
import { readCaller, refuseOtherStudios } from './callers.ts';
import { newCall, type RunCall } from './run-call.ts';

/** The maximum number of concurrent streams of a caller. Each may hold a page of leads that its client does not read. */
export const MAX_STREAMS_PER_CALLER = 64;

/** The dependencies of methods with streams of responses besides those of the use cases. */
export interface StreamContext {
  readonly run: RunCall;
  /** Aborts when the server stops. */
  readonly ending: AbortSignal;
}

/** Streams by a caller's name, because each of its credentials has its own Caller; without a name, by Caller. */
const streamsByCaller = new Map<string | Caller, number>();

/**
 * Executes a call with a stream of responses, as RunCall does with a single response. The call ends when its caller has
 * taken the last message.
 *
 * @param request the logged fields; they name its studio, to which the caller must have access
 */
export async function* runStream<Message>(
  run: RunCall,
  context: HandlerContext,
  request: object,
  messages: () => AsyncIterable<Message>,
): AsyncGenerator<Message> {
  const caller = readCaller(context);
  // Aborts when the caller disconnects, or its deadline passes.
  const { method, requestHeader, signal } = context;
  const end = Promise.withResolvers<object>();
  // Rethrown below, if a reader still waits.
  const ended = run({ ...newCall(method, requestHeader, caller), request }, () => end.promise);
  count(caller, 1);
  ended.finally(() => count(caller, -1)).catch(() => {});
  const cancel = () => end.reject(toStreamError(signal));
  // A caller that disconnects between two messages requests no further one, so only the signal reports it.
  signal.addEventListener('abort', cancel);
  try {
    assert(count(caller, 0) > 0, 'pending_not_negative');
    if (count(caller, 0) > MAX_STREAMS_PER_CALLER) {
      throw new ConnectError('the caller has too many streams', Code.ResourceExhausted);
    }
    refuseOtherStudios(caller, request);
    for await (const message of messages()) {
      if (signal.aborted) throw toStreamError(signal);
      yield message;
    }
    end.resolve({});
  } catch (error) {
    end.reject(error);
  } finally {
    // Has an effect only if the reader stopped at a message; otherwise the promise is settled.
    cancel();
    signal.removeEventListener('abort', cancel);
  }
  await ended;
}

/** Adds to a caller's number of streams, and returns the result. */
function count(caller: Caller, more: number): number {
  const key = caller.name ?? caller;
  const streams = (streamsByCaller.get(key) ?? 0) + more;
  if (streams === 0) streamsByCaller.delete(key);
  else streamsByCaller.set(key, streams);
  return streams;
}

const toStreamError = ({ reason }: AbortSignal): ConnectError =>
  reason instanceof ConnectError && reason.code === Code.DeadlineExceeded
    ? reason
    : new ConnectError('the caller has disconnected, or does not read', Code.Canceled);

/** Ends a stream when the server stops. @param whatToDo the instruction for its caller */
export function throwIfStopping(ending: AbortSignal, whatToDo: string): void {
  if (ending.aborted) throw new ConnectError(`the service is stopping: ${whatToDo}`, Code.Unavailable);
}
