import type { GrpcCaller } from './grpc.ts';
import { allOutcomes, type ItemCall, type Outcome, openItems, type WireResult } from './item-calls.ts';

/** The response to an item. */
export interface ExchangeAnswer {
  /** The raw body; undefined in the response to an authentication. */
  readonly body?: Buffer;
  /** The bearer of a key; defined only in the response to an authentication. */
  readonly bearer?: { readonly studioId: string; readonly apiKeyId: string; readonly scopes: readonly string[] };
  readonly leadId: string;
  readonly replayed: boolean;
}

/** A call of the exchange, from the caller's side. */
export interface ExchangeCall extends Omit<ItemCall<ExchangeAnswer>, 'send'> {
  /** Sends a message. Resolves when the next one can be sent, or the call has ended. */
  send(items: readonly object[]): Promise<void>;
}

/** Starts a call of the exchange. A message without results, or a second result for an item, is an error. */
export function openExchange(
  caller: GrpcCaller,
  options: { readonly authorization?: string | undefined } = {},
): ExchangeCall {
  const call = openItems<ExchangeWireResult, ExchangeAnswer>(caller, 'ExchangeService/Exchange', answerOf, options);
  return { ...call, send: (items) => call.send({ items }) };
}

/**
 * Sends messages over one call of the exchange and waits for its end.
 *
 * @returns the outcome of each item, in order
 * @throws Error unless each item has exactly one result
 */
export async function exchange(
  caller: GrpcCaller,
  messages: readonly (readonly object[])[],
): Promise<Outcome<ExchangeAnswer>[]> {
  const call = openExchange(caller);
  for (const items of messages) call.send(items);
  return allOutcomes(call, messages.flat().length);
}

/** Parses the JSON body of a response. */
export const jsonOf = <Json = Record<string, unknown>>(answer: Pick<ExchangeAnswer, 'body'> | undefined): Json =>
  JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(answer?.body));

interface ExchangeWireResult extends WireResult, ExchangeAnswer {}

function answerOf({ body, bearer, leadId, replayed }: ExchangeWireResult): ExchangeAnswer | undefined {
  if (body && bearer) throw new Error('a result has both a body and a bearer');
  if (body) return { body, leadId, replayed };
  return bearer ? { bearer, leadId, replayed } : undefined;
}
