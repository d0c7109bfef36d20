import { Code, ConnectError } from '@connectrpc/connect';
import type { Call } from './call.ts';
import type { RunCall } from './run-call.ts';

/**
 * Executes a call with a stream of responses, as RunCall executes one with a single response. The call ends when its
 * caller has taken the last message.
 *
 * @param signal aborted when the caller disconnects, or the deadline has passed
 */
export async function* runStream<Message>(
  run: RunCall,
  call: Call,
  messages: AsyncIterable<Message>,
  signal: AbortSignal,
): AsyncGenerator<Message> {
  const end = Promise.withResolvers<object>();
  // Rethrown below, if a consumer still waits.
  const ended = run(call, () => end.promise);
  ended.catch(() => {});
  const cancel = () => end.reject(reasonOf(signal));
  // A caller that disconnects between two messages requests no further one, so only the signal reports it.
  signal.addEventListener('abort', cancel);
  try {
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

const reasonOf = ({ reason }: AbortSignal): ConnectError =>
  reason instanceof ConnectError ? reason : new ConnectError('the caller has disconnected', Code.Canceled);
