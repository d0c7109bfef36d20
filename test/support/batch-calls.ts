import type { GrpcCaller } from './grpc.ts';
import { allOutcomes, type ItemCall, type Outcome, openItems, type WireResult } from './item-calls.ts';

/** A call of a batch method, from the caller's side. */
export interface BatchCall<Answer> extends Omit<ItemCall<Answer>, 'send'> {
  /**
   * Sends a message, optionally with an id for the log and a key for each request. Resolves when the next message can be
   * sent, or the call has ended.
   */
  send(requests: readonly object[], requestIds?: readonly string[], secretSha256s?: readonly Buffer[]): Promise<void>;
}

/** Starts a call of `Service/Method`. A message without results, or a second result for a request, is an error. */
export function openBatches<Answer = Record<string, unknown>>(
  caller: GrpcCaller,
  rpc: string,
  options: { readonly authorization?: string | undefined } = {},
): BatchCall<Answer> {
  const answerOf = ({ response }: BatchResult<Answer>) => response ?? undefined;
  const call = openItems<BatchResult<Answer>, Answer>(caller, rpc, answerOf, options);
  return {
    ...call,
    send: (requests, requestIds = [], secretSha256s = []) => call.send({ requests, requestIds, secretSha256s }),
  };
}

/**
 * Sends messages over one call and waits for its end.
 *
 * @returns the outcome of each request, in order
 * @throws Error unless each request has exactly one result
 */
export async function callInBatches<Answer = Record<string, unknown>>(
  caller: GrpcCaller,
  rpc: string,
  messages: readonly (readonly object[])[],
): Promise<Outcome<Answer>[]> {
  const call = openBatches<Answer>(caller, rpc);
  for (const requests of messages) call.send(requests);
  return allOutcomes(call, messages.flat().length);
}

interface BatchResult<Answer> extends WireResult {
  readonly response?: Answer | null;
}
