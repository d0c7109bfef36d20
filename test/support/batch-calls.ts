import type { GrpcCaller } from './grpc.ts';
import { allOutcomes, type ItemCall, type Outcome, openItems, type WireResult } from './item-calls.ts';

/** A call of a batch method, as its caller sees it. */
export interface BatchCall<Answer> extends Omit<ItemCall<Answer>, 'send'> {
  /**
   * Sends a message; requests may be named in the log, and come with keys. Resolves when the next one can go, or the call is
   * over.
   */
  send(requests: readonly object[], requestIds?: readonly string[], secretSha256s?: readonly Buffer[]): Promise<void>;
}

/** Begins a call of `Service/Method`. A message without results, and a second result for a request, are errors. */
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
 * Sends messages over one call, and waits for its end.
 *
 * @returns what became of each request, in their order
 * @throws Error unless each request has exactly one result
 */
export async function askInBatches<Answer = Record<string, unknown>>(
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
