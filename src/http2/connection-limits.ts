import { constants } from 'node:http2';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { asksForHealth, type Identify } from '../rpc/caller-authentication.ts';
import { type CallerConnection, type Connections, streamOf } from './connections.ts';
import type { ReportEnded } from './ended-stream-log.ts';

/**
 * How many connections there may be on which nobody has presented the token. One more closes another, so that whoever does
 * present it gets in, however many do not.
 */
export const MAX_UNAUTHENTICATED_CONNECTIONS = 256;

/** How many there may be on which somebody has. One more closes that on which nothing was under way for longest, or else itself. */
export const MAX_AUTHENTICATED_CONNECTIONS = 1024;

/** How many calls a stranger may have under way on a connection, and begin in a second. A probe has one, and begins one. */
export const MAX_CONCURRENT_CALLS = 8;
export const MAX_CALLS_PER_SECOND = 16;

/** How long what is under way on a connection that ends may take; milliseconds. It is the answer to a refused call. */
const AFTER_REFUSAL_MS = 250;

/** What is known of a connection on which nobody has presented the token. */
interface Stranger {
  underWay: number;
  begun: number;
  /** When `begun` began to count. */
  since: number;
}

/**
 * Bounds what a connection may cost on which nobody has presented the token: it ends with the first call that needs it, and
 * with too many of those that do not. Where it was presented once, a call without it is refused, and nothing else ends: a
 * proxy may send many callers' calls over one connection.
 */
export function limitConnections(
  app: FastifyInstance,
  connections: Connections,
  { identify, tell }: { readonly identify: Identify; readonly tell: ReportEnded },
): void {
  const strangers = new Map<CallerConnection, Stranger>();
  const callers = new Map<CallerConnection, Use>();

  connections.onTaken((connection) => {
    strangers.set(connection, { underWay: 0, begun: 0, since: 0 });
    connection.socket.once('close', () => strangers.delete(connection) || callers.delete(connection));
    if (strangers.size <= MAX_UNAUTHENTICATED_CONNECTIONS) return;
    tell('a connection, too many have not presented the token');
    leastNeeded(strangers).socket.destroy();
  });

  app.addHook('onRequest', async (request, reply) => {
    const connection = connections.of(request);
    if (!connection || connection.isEnding) return turnAway(reply);
    const use = callers.get(connection);
    if (use) return begin(use, reply);
    const stranger = strangers.get(connection);
    if (!stranger) return;
    if (identify(request)) {
      strangers.delete(connection);
      const own = { underWay: 0, lastMs: performance.now() };
      const idle = callers.size >= MAX_AUTHENTICATED_CONNECTIONS ? longestIdle(callers) : undefined;
      callers.set(connection, own);
      if (callers.size <= MAX_AUTHENTICATED_CONNECTIONS) return begin(own, reply);
      tell('a connection, too many have presented the token');
      if (idle) {
        idle.end(0);
        return begin(own, reply);
      }
    } else if (!asksForHealth(request.url)) {
      tell('a connection, for a call without the token');
      if (!streamOf(reply)) reply.header('connection', 'close');
      // The refusal itself is said where every call is authenticated.
      return connection.end(AFTER_REFUSAL_MS);
    } else if (begins(stranger, reply)) {
      return;
    } else {
      tell('a connection, for too many calls without the token');
    }
    connection.end(0);
    turnAway(reply);
  });
}

/** How a connection is used on which somebody has presented the token. */
interface Use {
  underWay: number;
  /** When a call began or ended on it last. */
  lastMs: number;
}

function begin(use: Use, reply: FastifyReply): void {
  use.underWay += 1;
  use.lastMs = performance.now();
  reply.raw.once('close', () => {
    use.underWay -= 1;
    use.lastMs = performance.now();
  });
}

/** The connection on which longest nothing was under way: who leaves theirs open is not to keep others out. */
function longestIdle(callers: ReadonlyMap<CallerConnection, Use>): CallerConnection | undefined {
  const idle = [...callers].filter(([, { underWay }]) => underWay === 0);
  return idle.sort(([, a], [, b]) => a.lastMs - b.lastMs)[0]?.[0];
}

/** Whether a stranger may begin a call. */
function begins(stranger: Stranger, reply: FastifyReply): boolean {
  const now = performance.now();
  if (now - stranger.since > 1000) {
    stranger.since = now;
    stranger.begun = 0;
  }
  stranger.begun += 1;
  stranger.underWay += 1;
  reply.raw.once('close', () => {
    stranger.underWay -= 1;
  });
  return stranger.begun <= MAX_CALLS_PER_SECOND && stranger.underWay <= MAX_CONCURRENT_CALLS;
}

/** The stranger who has waited longest without a call, or else longest of all. Those who watch are not without one. */
function leastNeeded(strangers: ReadonlyMap<CallerConnection, Stranger>): CallerConnection {
  const [first] = strangers.keys();
  for (const [connection, { underWay }] of strangers) if (underWay === 0) return connection;
  return first as CallerConnection;
}

/** Answers nothing: the connection of the call is at its end. */
function turnAway(reply: FastifyReply): void {
  reply.hijack();
  streamOf(reply)?.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
}
