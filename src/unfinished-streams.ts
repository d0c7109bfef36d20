import type { Http2Server, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { CORE_AFTER_CLOSE_MS, REQUEST_ARRIVAL_MS } from './runtime/deadlines.ts';

/** How many calls a caller may have under way on one connection. */
const MOST_STREAMS = 256;

/** How long a caller may go on with a request that is answered already; milliseconds. */
const AFTER_ANSWER_MS = 1000;

/**
 * Keeps callers who do not end their requests from holding memory, or a server that wants to stop. A message that is too
 * large is answered before it has been read to its end, and its stream would stay as long as the connection.
 *
 * @param mayLast whether a call by this path may go on sending for as long as it likes
 */
export function endUnfinishedStreams(app: FastifyInstance, mayLast: (path: string) => boolean): void {
  app.addHook('onRequest', async (request, reply) => {
    const { stream } = reply.raw as { stream?: ServerHttp2Stream };
    if (stream && !mayLast(request.url)) {
      const timer = setTimeout(() => stream.destroy(), REQUEST_ARRIVAL_MS).unref();
      request.raw.once('end', () => clearTimeout(timer));
    }
    // Not at once: the answer's trailers are still on their way.
    stream?.once('finish', () => {
      if (!stream.readableEnded) setTimeout(() => stream.destroy(), AFTER_ANSWER_MS).unref();
    });
  });

  const sessions = new Set<ServerHttp2Session>();
  const sockets = new Set<Socket>();
  const server = app.server as unknown as Http2Server;
  server.on('session', (session) => {
    keep(session, sessions);
    session.settings({ maxConcurrentStreams: MOST_STREAMS });
  });
  server.on('connection', (socket) => keep(socket, sockets));
  app.addHook('preClose', async () => {
    // Tells callers to begin nothing more here, before anything that they have begun comes to its end.
    for (const session of sessions) session.close();
    setTimeout(() => {
      // A session that has ended waits without a bound for the other side to close the connection as well.
      for (const socket of sockets) socket.destroy();
    }, CORE_AFTER_CLOSE_MS).unref();
  });
}

function keep<Item extends Socket | ServerHttp2Session>(item: Item, items: Set<Item>): void {
  items.add(item);
  item.once('close', () => items.delete(item));
}
