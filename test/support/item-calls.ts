import type { ServiceError } from '@grpc/grpc-js';
import { expect } from 'vitest';
import { type GrpcCaller, type PackedStatus, refusalIn, refusalOf, type SeenRefusal } from './grpc.ts';

/** What became of an item: its answer, or everything its refusal says. */
export type Outcome<Answer = Record<string, unknown>> =
  | { readonly answer: Answer; readonly refusal?: undefined }
  | { readonly answer?: undefined; readonly refusal: SeenRefusal };

/** A call that takes items in messages, and answers each by itself, as its caller sees it. */
export interface ItemCall<Answer> {
  /** Sends a message. Resolves when the next one can go, or the call is over. */
  send(message: object): Promise<void>;
  /** Says that there are no more messages. */
  end(): void;
  /** What is known so far, by the place of the item among all of the call. */
  readonly outcomes: ReadonlyMap<number, Outcome<Answer>>;
  /** The places of the items whose results came in each message so far. */
  readonly messages: readonly (readonly number[])[];
  /** Waits for what became of an item; rejects when the call is over before that. */
  outcome(index: number): Promise<Outcome<Answer>>;
  /** The end of the call; rejects with a ServiceError when it failed, or an Error when results were not as promised. */
  readonly ended: Promise<void>;
  /** Gives the call up. */
  cancel(): void;
}

/** A result as it comes: which item it is of, and what it failed with. */
export interface WireResult {
  readonly index: number;
  readonly error?: PackedStatus | null;
}

/**
 * Begins a call of `Service/Method`. A message without results, and a second result for an item, are errors.
 *
 * @param answerOf what a result answers with; undefined when it has no answer
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
  // Not everybody waits for the end.
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
 * Says that a call has no more messages, and waits for its end.
 *
 * @param count how many items it carried
 * @returns what became of each, in their order
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

/** What becomes of a request that is a call of its own. */
export async function outcomeOf<Answer>(call: Promise<Answer>): Promise<Outcome<Answer>> {
  return call.then(
    (answer) => ({ answer }),
    async () => ({ refusal: await refusalOf(call) }),
  );
}
