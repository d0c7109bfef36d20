import type { FastifyInstance } from 'fastify';
import { type CallerConnection, type Connections, streamOf } from './connections.ts';

/** By this fraction the age differs from the maximum, so that connections opened together do not end together. */
const JITTER = 0.1;

/** The time within which the peer has to close a drained connection without calls; milliseconds. */
const CLOSE_TIMEOUT_MS = 5000;

/** The state of a connection on which a call was made. */
interface ConnectionAge {
  /** When the connection reaches its maximum age. */
  readonly expiresAt: number;
  inFlight: number;
  isDraining: boolean;
}

/**
 * Has callers open another connection with the first call after a maximum age. This balances load: without it, a caller
 * stays for its lifetime at the core that its first connection reached. If no further call comes but calls are in
 * flight, the connection is drained at twice that age. Open-ended calls then end; others continue.
 *
 * A connection without calls is not drained: it is no load, and a caller that makes one call at a time never loses one.
 */
export function enforceMaxConnectionAge(app: FastifyInstance, connections: Connections, maxAgeMs: number): void {
  const ages = new WeakMap<CallerConnection, ConnectionAge>();
  app.addHook('onRequest', async (request, reply) => {
    const connection = connections.of(request);
    if (!connection) return;
    const age = ages.get(connection) ?? track(connection, jittered(maxAgeMs));
    age.inFlight += 1;
    reply.raw.once('close', () => {
      age.inFlight -= 1;
      // Not before: Node keeps reading from a closed session, see `CallerConnection.cutOff`.
      if (age.isDraining && age.inFlight === 0) connection.close(CLOSE_TIMEOUT_MS);
    });
    if (age.isDraining || performance.now() < age.expiresAt) return;
    age.isDraining = true;
    connection.drain();
    if (!streamOf(reply)) reply.header('connection', 'close');
  });

  function track(connection: CallerConnection, ageMs: number): ConnectionAge {
    const age: ConnectionAge = { expiresAt: performance.now() + ageMs, inFlight: 0, isDraining: false };
    ages.set(connection, age);
    // The only call may be open-ended, and no other may follow. A caller that makes occasional calls is drained during
    // one of them: a call that crosses the GOAWAY is refused, and not every library retries it.
    const timer = setTimeout(() => {
      if (age.inFlight === 0) return;
      connection.drain();
      // HTTP/1.1 announces the end in its next response instead.
      age.isDraining = connection.session !== undefined;
    }, 2 * ageMs).unref();
    connection.socket.once('close', () => clearTimeout(timer));
    return age;
  }
}

const jittered = (ms: number): number => ms * (1 - JITTER + 2 * JITTER * Math.random());
