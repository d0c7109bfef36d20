import type { ServiceError } from '@grpc/grpc-js';
import { expect } from 'vitest';
import { type GrpcCaller, type PackedStatus, type ReceivedRefusal, refusalIn } from './grpc.ts';

/** The response to an item of the exchange. */
export interface ExchangeAnswer {
  /** The raw body; undefined in the response to an authentication. */
  readonly body?: Buffer;
  /** The bearer of a key; defined only in the response to an authentication. */
  readonly bearer?: { readonly studioId: string; readonly apiKeyId: string; readonly scopes: readonly string[] };
  readonly leadId: string;
  readonly replayed: boolean;
}

/** The outcome of an item: its response, or its decoded refusal. */
export type Outcome =
  | { readonly answer: ExchangeAnswer; readonly refusal?: undefined }
  | { readonly answer?: undefined; readonly refusal: ReceivedRefusal };

/** A call of the exchange, as its caller uses it. */
interface ExchangeCall {
  /** Sends a message. Resolves when the next one can be sent, or the call has ended. */
  send(items: readonly object[]): Promise<void>;
  /** Ends the request. */
  end(): void;
  /** The outcomes so far, by the index of the item in the call. */
  readonly outcomes: ReadonlyMap<number, Outcome>;
  /** For each message received so far, the indices of the items that it has results for. */
  readonly messages: readonly (readonly number[])[];
  /** Waits for the outcome of an item; rejects when the call ends first. */
  outcome(index: number): Promise<Outcome>;
  /** Settles when the call ends; rejects with a ServiceError if it failed, or an Error if a result was malformed. */
  readonly ended: Promise<void>;
}

interface ExchangeResult extends ExchangeAnswer {
  readonly index: number;
  readonly error?: PackedStatus | null;
}

/** Starts a call of the exchange. A message without results and a second result for an item are errors. */
export function openExchange(
  caller: GrpcCaller,
  options: { readonly authorization?: string | undefined } = {},
): ExchangeCall {
  const stream = caller.open('ExchangeService/Exchange', options);
  const outcomes = new Map<number, Outcome>();
  const messages: number[][] = [];
  const waiting = new Map<number, PromiseWithResolvers<Outcome>>();
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  // Not every caller awaits the end.
  ended.catch(() => {});

  const take = (result: ExchangeResult) => {
    const { index, error } = result;
    expect(outcomes.has(index), 'a second result').toBe(false);
    const answer = toAnswer(result);
    if ((answer === undefined) === !error) throw new Error(`the result of item ${index} has not exactly one outcome`);
    const outcome = answer === undefined ? { refusal: refusalIn(error as PackedStatus) } : { answer };
    outcomes.set(index, outcome);
    waiting.get(index)?.resolve(outcome);
  };
  stream.on('data', ({ results }: { results: ExchangeResult[] }) => {
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
  // A failed call emits 'end', too.
  stream.on('end', () => {
    if (hasFailed) return;
    rejectWaiting(new Error('the call has ended'));
    resolve();
  });

  return {
    send: (items) =>
      new Promise((taken) => {
        stream.write({ items }, () => taken());
        ended.then(taken, () => taken());
      }),
    end: () => stream.end(),
    outcomes,
    messages,
    async outcome(index) {
      const known = outcomes.get(index);
      if (known) return known;
      const outcome = Promise.withResolvers<Outcome>();
      waiting.set(index, outcome);
      return outcome.promise;
    },
    ended,
  };
}

/**
 * Ends the request of a call and waits for the end of the call.
 *
 * @param count the number of items sent
 * @returns the outcome of each item, in order
 * @throws Error unless each item has exactly one result
 */
export async function allOutcomes(call: ExchangeCall, count: number): Promise<Outcome[]> {
  call.end();
  await call.ended;
  const outcomes = Array.from({ length: count }, (_, index) => call.outcomes.get(index) ?? []).flat();
  if (outcomes.length !== count || call.outcomes.size !== count) {
    throw new Error(`${count} items have results ${[...call.outcomes.keys()]}`);
  }
  return outcomes;
}

/**
 * Sends messages over one call of the exchange and waits for its end.
 *
 * @returns the outcome of each item, in order
 * @throws Error unless each item has exactly one result
 */
export async function exchange(caller: GrpcCaller, messages: readonly (readonly object[])[]): Promise<Outcome[]> {
  const call = openExchange(caller);
  for (const items of messages) call.send(items);
  return allOutcomes(call, messages.flat().length);
}

/** Parses the JSON body of a response. */
export const toJson = <Json = Record<string, unknown>>(answer: Pick<ExchangeAnswer, 'body'> | undefined): Json =>
  JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(answer?.body));

function toAnswer({ body, bearer, leadId, replayed }: ExchangeResult): ExchangeAnswer | undefined {
  if (body && bearer) throw new Error('a result has both a body and a bearer');
  if (body) return { body, leadId, replayed };
  return bearer ? { bearer, leadId, replayed } : undefined;
}
