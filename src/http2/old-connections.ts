import type { FastifyInstance } from 'fastify';
import { type CallerConnection, type Connections, streamOf } from './connections.ts';

/** By what part of it the age of a connection may differ from the greatest: those of one moment do not end in one moment. */
const JITTER = 0.1;

/** How long a caller may take to close a connection on which nothing is under way any more; milliseconds. */
const CLOSED_WITHIN_MS = 5000;

/** What is known of a connection on which something was called. */
interface Life {
  /** From when on it is old. */
  readonly oldAt: number;
  underWay: number;
  isOver: boolean;
}

/**
 * Has callers go over to another connection with the first call after a greatest age, so that load finds its balance: else they
 * stay for as long as they live at the core to which their first connection has led. What is under way goes on to its end.
 *
 * A connection on which nothing is called does not end: it is no load, and a caller with one call at a time cannot meet its end.
 */
export function leaveOldConnections(app: FastifyInstance, connections: Connections, maxAgeMs: number): void {
  const lives = new WeakMap<CallerConnection, Life>();
  app.addHook('onRequest', async (request, reply) => {
    const connection = connections.of(request);
    if (!connection) return;
    const life = lives.get(connection) ?? { oldAt: performance.now() + jittered(maxAgeMs), underWay: 0, isOver: false };
    lives.set(connection, life);
    life.underWay += 1;
    reply.raw.once('close', () => {
      life.underWay -= 1;
      // Not before: of a session that is closed Node reads on, see `CallerConnection.end`.
      if (life.isOver && life.underWay === 0) connection.close(CLOSED_WITHIN_MS);
    });
    if (life.isOver || performance.now() < life.oldAt) return;
    life.isOver = true;
    if (streamOf(reply)) connection.leave();
    else reply.header('connection', 'close');
  });
}

const jittered = (ms: number): number => ms * (1 - JITTER + 2 * JITTER * Math.random());
