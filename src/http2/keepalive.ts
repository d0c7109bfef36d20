import type { FastifyInstance } from 'fastify';
import type { ReportClosure } from './closure-log.ts';
import type { CallerConnection, Connections } from './connections.ts';

/** The interval between checks of all connections; milliseconds. */
const CHECK_INTERVAL_MS = 20_000;

/**
 * After this many checks without an answer a connection is closed. Not a time: this process may have been suspended.
 */
export const MAX_MISSED_PINGS = 3;

/**
 * Closes connections whose peer does not answer a ping: it has disappeared without closing the connection, or it reads
 * nothing, so that sent data stays in this process's memory.
 */
export function enforceKeepalive(app: FastifyInstance, connections: Connections, report: ReportClosure): void {
  const missedPings = new WeakMap<CallerConnection, number>();
  const timer = setInterval(() => {
    for (const connection of connections) {
      const { session, socket } = connection;
      if (!session || session.destroyed) continue;
      const missed = missedPings.get(connection) ?? 0;
      missedPings.set(connection, missed + 1);
      if (missed === 0) session.ping(() => missedPings.delete(connection));
      if (missed < MAX_MISSED_PINGS) continue;
      report('connection: pings not answered');
      socket.destroy();
    }
  }, CHECK_INTERVAL_MS).unref();
  app.addHook('onClose', async () => clearInterval(timer));
}
