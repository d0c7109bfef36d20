import type { ServiceError } from '@grpc/grpc-js';
import { expect } from 'vitest';
import { type GrpcCaller, type PackedStatus, refusalIn, refusalOf, type SeenRefusal } from './grpc.ts';

/** What became of a request: its answer, or everything its refusal says. */
export type Outcome<Answer = Record<string, unknown>> =
  | { readonly answer: Answer; readonly refusal?: undefined }
  | { readonly answer?: undefined; readonly refusal: SeenRefusal };

/** A call of a batch method, as its caller sees it. */
export interface BatchCall<Answer> {
  /**
   * Sends a message; requests may be named in the log, and come with keys. Resolves when the next one can go, or the call is
   * over.
   */
  send(requests: readonly object[], requestIds?: readonly string[], secretSha256s?: readonly Buffer[]): Promise<void>;
  /** Says that there are no more messages. */
  end(): void;
  /** What is known so far, by the place of the request among all of the call. */
  readonly outcomes: ReadonlyMap<number, Outcome<Answer>>;
  /** Waits for what became of a request; rejects when the call is over before that. */
  outcome(index: number): Promise<Outcome<Answer>>;
  /** The end of the call; rejects with a ServiceError when it failed, or an Error when results were not as promised. */
  readonly ended: Promise<void>;
  /** Gives the call up. */
  cancel(): void;
}

/** Begins a call of `Service/Method`. A message without results, and a second result for a request, are errors. */
export function openBatches<Answer = Record<string, unknown>>(
  caller: GrpcCaller,
  rpc: string,
  options: { readonly authorization?: string | undefined } = {},
): BatchCall<Answer> {
  const stream = caller.open(rpc, options);
  const outcomes = new Map<number, Outcome<Answer>>();
  const waiting = new Map<number, PromiseWithResolvers<Outcome<Answer>>>();
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  // Not everybody waits for the end.
  ended.catch(() => {});

  const take = ({ index, response, error }: WireResult<Answer>) => {
    expect(outcomes.has(index), 'a second result').toBe(false);
    if (!response === !error) throw new Error(`the result of request ${index} has not exactly one outcome`);
    const outcome = response ? { answer: response } : { refusal: refusalIn(error as PackedStatus) };
    outcomes.set(index, outcome);
    waiting.get(index)?.resolve(outcome);
  };
  stream.on('data', ({ results }: { results: WireResult<Answer>[] }) => {
    try {
      if (results.length === 0) throw new Error('a message has no results');
      for (const result of results) take(result);
    } catch (error) {
      stream.cancel();
      reject(error);
    }
  });
  const over = (error: unknown) => {
    for (const { reject } of waiting.values()) reject(error);
  };
  let hasFailed = false;
  stream.on('error', (error: ServiceError) => {
    hasFailed = true;
    over(error);
    reject(error);
  });
  // Also told after a failure.
  stream.on('end', () => {
    if (hasFailed) return;
    over(new Error('the call is over'));
    resolve();
  });

  return {
    send: (requests, requestIds = [], secretSha256s = []) =>
      new Promise((taken) => {
        stream.write({ requests, requestIds, secretSha256s }, () => taken());
        ended.then(taken, () => taken());
      }),
    end: () => stream.end(),
    outcomes,
    async outcome(index) {
      const known = outcomes.get(index);
      if (known) return known;
      const outcome = Promise.withResolvers<Outcome<Answer>>();
      waiting.set(index, outcome);
      return outcome.promise;
    },
    ended,
    cancel: () => stream.cancel(),
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
  call.end();
  await call.ended;
  const requests = messages.flat();
  const outcomes = requests.flatMap((_, index) => call.outcomes.get(index) ?? []);
  if (outcomes.length !== requests.length || call.outcomes.size !== requests.length) {
    throw new Error(`${requests.length} requests have results ${[...call.outcomes.keys()]}`);
  }
  return outcomes;
}

/** What becomes of a request that is a call of its own. */
export async function outcomeOf<Answer>(call: Promise<Answer>): Promise<Outcome<Answer>> {
  return call.then(
    (answer) => ({ answer }),
    async () => ({ refusal: await refusalOf(call) }),
  );
}

interface WireResult<Answer> {
  readonly index: number;
  readonly response: Answer | null;
  readonly error: PackedStatus | null;
}
