import type { GrpcCaller } from './grpc.ts';
import { allOutcomes, type ItemCall, type Outcome, openItems, type WireResult } from './item-calls.ts';

/** What an item is answered with. */
export interface ExchangeAnswer {
  /** As it came; undefined for a key that was asked about. */
  readonly body?: Buffer;
  /** What a key says. */
  readonly bearer?: { readonly studioId: string; readonly apiKeyId: string; readonly scopes: readonly string[] };
  readonly leadId: string;
  readonly replayed: boolean;
}

/** A call of the exchange, as its caller sees it. */
export interface ExchangeCall extends Omit<ItemCall<ExchangeAnswer>, 'send'> {
  /** Sends a message. Resolves when the next one can go, or the call is over. */
  send(items: readonly object[]): Promise<void>;
}

/** Begins a call of the exchange. A message without results, and a second result for an item, are errors. */
export function openExchange(
  caller: GrpcCaller,
  options: { readonly authorization?: string | undefined } = {},
): ExchangeCall {
  const call = openItems<ExchangeWireResult, ExchangeAnswer>(caller, 'ExchangeService/Exchange', answerOf, options);
  return { ...call, send: (items) => call.send({ items }) };
}

/**
 * Sends messages over one call of the exchange, and waits for its end.
 *
 * @returns what became of each item, in their order
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

/** The JSON of a body. */
export const jsonOf = <Json = Record<string, unknown>>(answer: ExchangeAnswer | undefined): Json =>
  JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(answer?.body));

interface ExchangeWireResult extends WireResult, ExchangeAnswer {}

function answerOf({ body, bearer, leadId, replayed }: ExchangeWireResult): ExchangeAnswer | undefined {
  if (body && bearer) throw new Error('a result has a body and tells of a key');
  if (body) return { body, leadId, replayed };
  return bearer ? { bearer, leadId, replayed } : undefined;
}
