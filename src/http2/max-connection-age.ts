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
 * stay for as long as they live at the core to which their first connection has led. Where none comes, but something is under way,
 * they are told at twice that age. Calls that last until somebody ends them end then; what else is under way goes on to its end.
 *
 * A connection on which nothing is called does not end: it is no load, and a caller with one call at a time cannot meet its end.
 */
export function enforceMaxConnectionAge(app: FastifyInstance, connections: Connections, maxAgeMs: number): void {
  const lives = new WeakMap<CallerConnection, Life>();
  app.addHook('onRequest', async (request, reply) => {
    const connection = connections.of(request);
    if (!connection) return;
    const life = lives.get(connection) ?? begin(connection, jittered(maxAgeMs));
    life.underWay += 1;
    reply.raw.once('close', () => {
      life.underWay -= 1;
      // Not before: of a session that is closed Node reads on, see `CallerConnection.end`.
      if (life.isOver && life.underWay === 0) connection.close(CLOSED_WITHIN_MS);
    });
    if (life.isOver || performance.now() < life.oldAt) return;
    life.isOver = true;
    connection.drain();
    if (!streamOf(reply)) reply.header('connection', 'close');
  });

  function begin(connection: CallerConnection, ageMs: number): Life {
    const life: Life = { oldAt: performance.now() + ageMs, underWay: 0, isOver: false };
    lives.set(connection, life);
    // What is under way may be a call that lasts for ever, and no other may ever come. Whoever makes others now and then is told
    // with one of these: one that is on its way as the connection is left is refused, and not every library repeats it.
    const timer = setTimeout(() => {
      if (life.underWay === 0) return;
      connection.drain();
      // HTTP/1.1 says so with its next answer.
      life.isOver = connection.session !== undefined;
    }, 2 * ageMs).unref();
    connection.socket.once('close', () => clearTimeout(timer));
    return life;
  }
}

const jittered = (ms: number): number => ms * (1 - JITTER + 2 * JITTER * Math.random());
