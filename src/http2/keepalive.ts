import type { FastifyInstance } from 'fastify';
import type { CallerConnection, Connections } from './connections.ts';
import type { ReportEnded } from './ended-stream-log.ts';

/** How often connections are looked over; milliseconds. */
const LOOK_MS = 20_000;

/** How many looks may find a connection that has not answered. Counted, not timed, as this process may have stood still. */
export const MAX_MISSED_PINGS = 3;

/**
 * Ends connections that give no sign of life when they are asked for one: those whose caller is gone without a word, and those
 * whose caller reads nothing at all, so that what was sent waits in this process's memory.
 */
export function enforceKeepalive(app: FastifyInstance, connections: Connections, tell: ReportEnded): void {
  const unanswered = new WeakMap<CallerConnection, number>();
  const looking = setInterval(() => {
    for (const connection of connections) {
      const { session, socket } = connection;
      if (!session || session.destroyed) continue;
      const looks = unanswered.get(connection) ?? 0;
      unanswered.set(connection, looks + 1);
      if (looks === 0) session.ping(() => unanswered.delete(connection));
      if (looks < MAX_MISSED_PINGS) continue;
      tell('a connection, without a sign of life');
      socket.destroy();
    }
  }, LOOK_MS).unref();
  app.addHook('onClose', async () => clearInterval(looking));
}
