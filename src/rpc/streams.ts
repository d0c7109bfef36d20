import { Code, ConnectError } from '@connectrpc/connect';
import { assert } from '../../common/invariants.ts';
import type { Caller } from '../domain/caller.ts';
import type { Call, RunCall } from './observation.ts';

/** The maximum number of concurrent streams of one caller. Each may hold a page of leads that its client does not read. */
export const MAX_STREAMS_PER_CALLER = 64;

const streamsOf = new WeakMap<Caller, number>();

/**
 * Executes a call with a stream of responses, as RunCall executes one with a single response. The call ends when its
 * caller has taken the last message.
 *
 * @param caller whose share of all streams it counts in
 * @param signal aborted when the caller disconnects, or the deadline has passed
 */
export async function* runStream<Message>(
  run: RunCall,
  call: Call,
  caller: Caller,
  messages: AsyncIterable<Message>,
  signal: AbortSignal,
): AsyncGenerator<Message> {
  const end = Promise.withResolvers<object>();
  // Rethrown below, if a consumer still waits.
  const ended = run(call, () => end.promise);
  count(caller, 1);
  ended.finally(() => count(caller, -1)).catch(() => {});
  const cancel = () => end.reject(reasonOf(signal));
  // A caller that disconnects between two messages requests no further one, so only the signal reports it.
  signal.addEventListener('abort', cancel);
  try {
    assert(count(caller, 0) > 0, 'pending_not_negative');
    if (count(caller, 0) > MAX_STREAMS_PER_CALLER) {
      throw new ConnectError('the caller has too many streams', Code.ResourceExhausted);
    }
    for await (const message of messages) {
      if (signal.aborted) throw reasonOf(signal);
      yield message;
    }
    end.resolve({});
  } catch (error) {
    end.reject(error);
  } finally {
    // Has an effect only if the consumer stopped at a message; otherwise the promise is settled.
    cancel();
    signal.removeEventListener('abort', cancel);
  }
  await ended;
}

/** Adds to the number of streams of a caller, and returns it. */
function count(caller: Caller, more: number): number {
  const streams = (streamsOf.get(caller) ?? 0) + more;
  streamsOf.set(caller, streams);
  return streams;
}

const reasonOf = ({ reason }: AbortSignal): ConnectError =>
  reason instanceof ConnectError && reason.code === Code.DeadlineExceeded
    ? reason
    : new ConnectError('the caller has disconnected, or does not read', Code.Canceled);

/** Yields values until the signal is aborted. */
export async function* takeUntil<Value>(signal: AbortSignal, values: AsyncIterable<Value>): AsyncGenerator<Value> {
  const iterator = values[Symbol.asyncIterator]();
  // One listener for all values: one per value would accumulate on the signal.
  let stop = () => {};
  const onAbort = () => stop();
  signal.addEventListener('abort', onAbort);
  try {
    while (!signal.aborted) {
      const next = await new Promise<IteratorResult<Value>>((resolve, reject) => {
        stop = () => resolve({ done: true, value: undefined });
        iterator.next().then(resolve, reject);
      });
      if (next.done) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
