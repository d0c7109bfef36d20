import { Code, ConnectError } from '@connectrpc/connect';
import type { Call } from './call.ts';
import type { RunCall } from './run-call.ts';

/**
 * Runs a call that is answered with many messages, as RunCall does one with a single answer: it is over when the last was taken.
 *
 * @param signal aborted when its caller has left, or its deadline has passed
 */
export async function* runStream<Message>(
  run: RunCall,
  call: Call,
  messages: AsyncIterable<Message>,
  signal: AbortSignal,
): AsyncGenerator<Message> {
  const end = Promise.withResolvers<object>();
  // Told below, to whoever still asks.
  const ended = run(call, () => end.promise);
  ended.catch(() => {});
  const leave = () => end.reject(reasonOf(signal));
  // Who leaves while a message waits to be taken is not heard of otherwise: no further one is asked for.
  signal.addEventListener('abort', leave);
  try {
    for await (const message of messages) {
      if (signal.aborted) throw reasonOf(signal);
      yield message;
    }
    end.resolve({});
  } catch (error) {
    end.reject(error);
  } finally {
    // Only where it was left at a message: whatever ended it before has been told.
    leave();
    signal.removeEventListener('abort', leave);
  }
  await ended;
}

const reasonOf = ({ reason }: AbortSignal): ConnectError =>
  reason instanceof ConnectError ? reason : new ConnectError('the caller has left', Code.Canceled);
