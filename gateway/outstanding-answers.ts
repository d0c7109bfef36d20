import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as turnOver } from 'node:timers/promises';

/** What came over a connection: a client may send the next request before it has the answer to the one before. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

const outstanding = new WeakMap<Socket, Set<Exchange>>();
const latest = new WeakMap<Socket, Exchange>();
const closing = new WeakSet<Socket>();

/** Keeps in mind that a request is to be answered. */
export function expectAnswer(request: IncomingMessage, response: ServerResponse): void {
  const { socket } = request;
  const exchange = { request, response };
  const exchanges = outstanding.get(socket) ?? new Set();
  outstanding.set(socket, exchanges.add(exchange));
  latest.set(socket, exchange);
  response.once('close', () => exchanges.delete(exchange));
}

/**
 * Whether the connection is to end with the answer to a request: no other protocol is spoken here, and Node may hand what
 * comes behind the wish for one to nobody, so that its caller would wait.
 */
export const isLastOnConnection = ({ headers }: IncomingMessage): boolean => headers.upgrade !== undefined;

/** Says that the answer to a request closes its connection: nothing behind it is carried out, or answered. */
export function closeBehind({ socket }: IncomingMessage): void {
  closing.add(socket);
}

/** Whether others on the connection of a request, before it, have no answer yet. */
export function isPipelined(request: IncomingMessage): boolean {
  const [first] = outstanding.get(request.socket) ?? [];
  return closing.has(request.socket) || (first !== undefined && first.request !== request);
}

/**
 * Waits until everything before a request on its connection is answered.
 *
 * @returns whether the connection goes on, so that the request may be carried out
 */
export async function takesItsTurn(request: IncomingMessage): Promise<boolean> {
  const exchanges = [...(outstanding.get(request.socket) ?? [])];
  const before = exchanges.slice(
    0,
    exchanges.findIndex((exchange) => exchange.request === request),
  );
  await Promise.all(before.map(({ response }) => once(response, 'close')));
  return !closing.has(request.socket) && !request.socket.destroyed;
}

/**
 * Waits until everything that came whole before what is being read has its answer: another in its place would tell a caller
 * the wrong thing of a request that is carried out.
 *
 * @returns whether what is being read may still be answered; it may not be answered twice
 */
export async function mayAnswerUnreadable(socket: Socket): Promise<boolean> {
  // What was read of it may be enough to refuse it, which then happens now.
  await turnOver();
  const whole = [...(outstanding.get(socket) ?? [])].filter(({ request }) => request.complete);
  await Promise.all(whole.map(({ response }) => once(response, 'close')));
  const last = latest.get(socket);
  const isAnswered = last !== undefined && !last.request.complete && last.response.headersSent;
  return socket.writable && !isAnswered && !closing.has(socket);
}
