import { constants } from 'node:http2';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { type Identify, isHealthPath } from '../rpc/caller-authentication.ts';
import type { ReportClosure } from './closure-log.ts';
import { type CallerConnection, type Connections, streamOf } from './connections.ts';

/**
 * The maximum number of unauthenticated connections. One more closes another one of them, so that they cannot keep
 * authenticated callers out, whatever their number.
 */
export const MAX_UNAUTHENTICATED_CONNECTIONS = 256;

/** The maximum number of authenticated connections. One more closes the one idle longest, or itself if none is idle. */
export const MAX_AUTHENTICATED_CONNECTIONS = 1024;

/** The limits on calls of an unauthenticated connection. A probe has one call in flight, and begins one per second. */
export const MAX_CONCURRENT_CALLS = 8;
export const MAX_CALLS_PER_SECOND = 16;

/** How long a connection stays open after a call was refused, so that the response can be sent; milliseconds. */
const AFTER_REFUSAL_MS = 250;

/** The calls of an unauthenticated connection. */
interface UnauthenticatedUse {
  inFlight: number;
  /** The number of calls begun since `since`. */
  begun: number;
  since: number;
}

/** The calls of an authenticated connection. */
interface AuthenticatedUse {
  inFlight: number;
  /** When a call last began or ended. */
  lastMs: number;
}

/**
 * Bounds the number and the cost of connections. An unauthenticated connection is cut off by its first call that needs
 * authentication, and by too many calls that do not. On a connection on which one call was authenticated, a call that is not
 * is refused and has no other effect: a proxy may send the calls of many callers over one connection.
 */
export function limitConnections(
  app: FastifyInstance,
  connections: Connections,
  { identify, report }: { readonly identify: Identify; readonly report: ReportClosure },
): void {
  const unauthenticated = new Map<CallerConnection, UnauthenticatedUse>();
  const authenticated = new Map<CallerConnection, AuthenticatedUse>();

  connections.onAccepted((connection) => {
    unauthenticated.set(connection, { inFlight: 0, begun: 0, since: 0 });
    connection.socket.once('close', () => unauthenticated.delete(connection) || authenticated.delete(connection));
    if (unauthenticated.size <= MAX_UNAUTHENTICATED_CONNECTIONS) return;
    report('connection: too many unauthenticated connections');
    const other = leastActive(unauthenticated);
    other.cutOff(0);
    // It closes later; until then, it must not be chosen again in place of one that is still open.
    unauthenticated.delete(other);
  });

  app.addHook('onRequest', async (request, reply) => {
    const connection = connections.of(request);
    if (!connection || connection.isCutOff) return discard(reply);
    const use = authenticated.get(connection);
    if (use) return track(use, reply);
    const unauthenticatedUse = unauthenticated.get(connection);
    if (!unauthenticatedUse) return;
    if (identify(request)) {
      unauthenticated.delete(connection);
      if (authenticated.size >= MAX_AUTHENTICATED_CONNECTIONS) {
        report('connection: too many authenticated connections');
        const idle = longestIdle(authenticated);
        if (!idle) {
          connection.cutOff(0);
          return discard(reply);
        }
        idle.cutOff(0);
        authenticated.delete(idle);
      }
      const newUse = { inFlight: 0, lastMs: performance.now() };
      authenticated.set(connection, newUse);
      return track(newUse, reply);
    } else if (!isHealthPath(request.url)) {
      report('connection: unauthenticated call');
      if (!streamOf(reply)) reply.header('connection', 'close');
      // `admitKnownCallers` sends the refusal itself.
      return connection.cutOff(AFTER_REFUSAL_MS);
    } else if (isWithinLimits(unauthenticatedUse, reply)) {
      return;
    } else {
      report('connection: too many unauthenticated calls');
    }
    connection.cutOff(0);
    discard(reply);
  });
}

function track(use: AuthenticatedUse, reply: FastifyReply): void {
  use.inFlight += 1;
  use.lastMs = performance.now();
  reply.raw.once('close', () => {
    use.inFlight -= 1;
    use.lastMs = performance.now();
  });
}

/** Returns the connection that has been idle longest, if any: idle connections must not keep other callers out. */
function longestIdle(authenticated: ReadonlyMap<CallerConnection, AuthenticatedUse>): CallerConnection | undefined {
  const idle = [...authenticated].filter(([, { inFlight }]) => inFlight === 0);
  return idle.sort(([, a], [, b]) => a.lastMs - b.lastMs)[0]?.[0];
}

/** Counts a call, and returns whether its connection is within the limits. */
function isWithinLimits(use: UnauthenticatedUse, reply: FastifyReply): boolean {
  const now = performance.now();
  if (now - use.since > 1000) {
    use.since = now;
    use.begun = 0;
  }
  use.begun += 1;
  use.inFlight += 1;
  reply.raw.once('close', () => {
    use.inFlight -= 1;
  });
  return use.begun <= MAX_CALLS_PER_SECOND && use.inFlight <= MAX_CONCURRENT_CALLS;
}

/** Returns the oldest connection without a call in flight, or else the oldest. A health watch is a call in flight. */
function leastActive(unauthenticated: ReadonlyMap<CallerConnection, UnauthenticatedUse>): CallerConnection {
  const [first] = unauthenticated.keys();
  for (const [connection, { inFlight }] of unauthenticated) if (inFlight === 0) return connection;
  return first as CallerConnection;
}

/** Ends a call without a response: its connection is being closed. */
function discard(reply: FastifyReply): void {
  reply.hijack();
  streamOf(reply)?.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
}
