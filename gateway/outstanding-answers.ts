import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** What came over a connection: a client may send the next request before it has the answer to the one before. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

const outstanding = new WeakMap<Socket, Set<Exchange>>();
const latest = new WeakMap<Socket, Exchange>();

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
 * Waits until everything that came before what is being read has its answer: another in its place would tell a caller the
 * wrong thing of a request that is carried out.
 *
 * @returns whether what is being read may still be answered; it may not be answered twice
 */
export async function earlierAnswers(socket: Socket): Promise<boolean> {
  const whole = [...(outstanding.get(socket) ?? [])].filter(({ request }) => request.complete);
  await Promise.all(whole.map(({ response }) => once(response, 'close')));
  const last = latest.get(socket);
  const isAnswered = last !== undefined && !last.request.complete && last.response.headersSent;
  return socket.writable && !isAnswered;
}
