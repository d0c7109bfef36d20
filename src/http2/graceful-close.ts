import type { FastifyInstance } from 'fastify';
import { CORE_AFTER_CLOSE_MS } from '../../common/deadlines.ts';
import type { Connections } from './connections.ts';

/** Lets callers end what they have begun when the server stops, and none of them hold it for longer than that may take. */
export function closeGracefully(app: FastifyInstance, connections: Connections): void {
  app.addHook('preClose', async () => {
    // Before anything that callers have begun comes to its end.
    for (const connection of connections) connection.close(CORE_AFTER_CLOSE_MS);
  });
}
