import type { ServiceError } from '@grpc/grpc-js';
import { expect } from 'vitest';
import { type GrpcCaller, type PackedStatus, type ReceivedRefusal, refusalIn, refusalOf } from './grpc.ts';

/** The outcome of an item: its response, or its decoded refusal. */
export type Outcome<Answer = Record<string, unknown>> =
  | { readonly answer: Answer; readonly refusal?: undefined }
  | { readonly answer?: undefined; readonly refusal: ReceivedRefusal };

/** A call with many items in a message and one result for each, from the caller's side. */
export interface ItemCall<Answer> {
  /** Sends a message. Resolves when the next one can be sent, or the call has ended. */
  send(message: object): Promise<void>;
  /** Ends the request. */
  end(): void;
  /** The outcomes so far, by the index of the item in the call. */
  readonly outcomes: ReadonlyMap<number, Outcome<Answer>>;
  /** For each message received so far, the indices of the items that it has results of. */
  readonly messages: readonly (readonly number[])[];
  /** Waits for the outcome of an item; rejects when the call ends before. */
  outcome(index: number): Promise<Outcome<Answer>>;
  /** Settles when the call ends; rejects with a ServiceError when it failed, or an Error when a result was malformed. */
  readonly ended: Promise<void>;
  cancel(): void;
}

/** The common fields of results: the index of the item, and its error. */
export interface WireResult {
  readonly index: number;
  readonly error?: PackedStatus | null;
}

/**
 * Starts a call of `Service/Method`. A message without results, or a second result for an item, is an error.
 *
 * @param answerOf returns the response in a result, or undefined when it has none
 */
export function openItems<Result extends WireResult, Answer>(
  caller: GrpcCaller,
  rpc: string,
  answerOf: (result: Result) => Answer | undefined,
  options: { readonly authorization?: string | undefined } = {},
): ItemCall<Answer> {
  const stream = caller.open(rpc, options);
  const outcomes = new Map<number, Outcome<Answer>>();
  const messages: number[][] = [];
  const waiting = new Map<number, PromiseWithResolvers<Outcome<Answer>>>();
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  // Not every caller awaits the end.
  ended.catch(() => {});

  const take = (result: Result) => {
    const { index, error } = result;
    expect(outcomes.has(index), 'a second result').toBe(false);
    const answer = answerOf(result);
    if ((answer === undefined) === !error) throw new Error(`the result of item ${index} has not exactly one outcome`);
    const outcome = answer === undefined ? { refusal: refusalIn(error as PackedStatus) } : { answer };
    outcomes.set(index, outcome);
    waiting.get(index)?.resolve(outcome);
  };
  stream.on('data', ({ results }: { results: Result[] }) => {
    try {
      if (results.length === 0) throw new Error('a message has no results');
      messages.push(results.map(({ index }) => index));
      for (const result of results) take(result);
    } catch (error) {
      stream.cancel();
      reject(error);
    }
  });
  const rejectWaiting = (error: unknown) => {
    for (const { reject } of waiting.values()) reject(error);
  };
  let hasFailed = false;
  stream.on('error', (error: ServiceError) => {
    hasFailed = true;
    rejectWaiting(error);
    reject(error);
  });
  // Emitted after a failure, too.
  stream.on('end', () => {
    if (hasFailed) return;
    rejectWaiting(new Error('the call has ended'));
    resolve();
  });

  return {
    send: (message) =>
      new Promise((taken) => {
        stream.write(message, () => taken());
        ended.then(taken, () => taken());
      }),
    end: () => stream.end(),
    outcomes,
    messages,
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
 * Ends the request of a call and waits for the end of the call.
 *
 * @param count the number of items sent
 * @returns the outcome of each item, in order
 * @throws Error unless each has exactly one result
 */
export async function allOutcomes<Answer>(
  call: Pick<ItemCall<Answer>, 'end' | 'ended' | 'outcomes'>,
  count: number,
): Promise<Outcome<Answer>[]> {
  call.end();
  await call.ended;
  const outcomes = Array.from({ length: count }, (_, index) => call.outcomes.get(index) ?? []).flat();
  if (outcomes.length !== count || call.outcomes.size !== count) {
    throw new Error(`${count} items have results ${[...call.outcomes.keys()]}`);
  }
  return outcomes;
}

/** The outcome of a unary call. */
export async function outcomeOf<Answer>(call: Promise<Answer>): Promise<Outcome<Answer>> {
  return call.then(
    (answer) => ({ answer }),
    async () => ({ refusal: await refusalOf(call) }),
  );
}
