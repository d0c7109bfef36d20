import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * Carries out nothing that comes over a connection after the answer that closes it (RFC 9112, section 9.6): nobody would
 * learn what became of it.
 */
export function carryOutNothingAfterTheLast(app: FastifyInstance): void {
  const closing = new WeakSet<Socket>();
  app.addHook('onRequest', async (request, reply) => {
    if (closing.has(request.raw.socket)) return reply.hijack();
    if (reply.getHeader('connection') === 'close') closing.add(request.raw.socket);
  });
  app.addHook('onSend', async (request, reply) => {
    if (reply.getHeader('connection') === 'close') closing.add(request.raw.socket);
  });
}
