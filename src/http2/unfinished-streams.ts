import type { Http2Server } from 'node:http2';
import type { FastifyInstance } from 'fastify';
import { REQUEST_ARRIVAL_MS } from '../../common/deadlines.ts';
import { streamOf } from './connections.ts';

/** How many calls a caller may have under way on one connection. */
const MAX_STREAMS = 256;

/** How long a caller may go on with a request that is answered already; milliseconds. */
const AFTER_ANSWER_MS = 1000;

/**
 * Keeps callers who do not end their requests from holding memory. A message that is too
 * large is answered before it has been read to its end, and its stream would stay as long as the connection.
 *
 * @param mayLast whether a call by this path may go on sending for as long as it likes
 */
export function endUnfinishedStreams(app: FastifyInstance, mayLast: (path: string) => boolean): void {
  app.addHook('onRequest', async (request, reply) => {
    const stream = streamOf(reply);
    if (stream && !mayLast(request.url)) {
      const timer = setTimeout(() => stream.destroy(), REQUEST_ARRIVAL_MS).unref();
      request.raw.once('end', () => clearTimeout(timer));
      // One that is reset has no end, and would be kept for as long as the timer.
      stream.once('close', () => clearTimeout(timer));
    }
    // Not at once: the answer's trailers are still on their way.
    stream?.once('finish', () => {
      if (!stream.readableEnded) setTimeout(() => stream.destroy(), AFTER_ANSWER_MS).unref();
    });
  });

  const server = app.server as unknown as Http2Server;
  server.on('session', (session) => session.settings({ maxConcurrentStreams: MAX_STREAMS }));
}
