import type { FastifyInstance } from 'fastify';
import { closeBehind, isLastOnConnection, isPipelined, takesItsTurn } from '../outstanding-answers.ts';

/**
 * Carries out the requests of a connection one after the other, and none behind the answer that closes it (RFC 9112,
 * section 9.6): nobody would learn what became of it.
 */
export function carryOutInTurn(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    if (isLastOnConnection(request.raw)) reply.header('connection', 'close');
    if (isPipelined(request.raw) && !(await takesItsTurn(request.raw))) return reply.hijack();
    if (reply.getHeader('connection') === 'close') closeBehind(request.raw);
  });
  app.addHook('onSend', async (request, reply) => {
    if (reply.getHeader('connection') === 'close') closeBehind(request.raw);
  });
}
