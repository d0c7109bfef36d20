import type { Http2Server } from 'node:http2';
import type { FastifyInstance } from 'fastify';
import { REQUEST_ARRIVAL_MS } from '../../common/deadlines.ts';
import { streamOf } from './connections.ts';

/** The maximum number of concurrent streams of a connection. */
const MAX_STREAMS = 256;

/** How long a caller may continue to send a request after its response; milliseconds. */
const AFTER_RESPONSE_MS = 1000;

/**
 * Destroys streams whose request does not end, so that they do not hold memory. A message that is too large gets its
 * response before it was read to its end, and its stream would otherwise stay open as long as the connection.
 *
 * @param isOpenEnded whether a call with this path may keep sending indefinitely
 */
export function endUnfinishedStreams(app: FastifyInstance, isOpenEnded: (path: string) => boolean): void {
  app.addHook('onRequest', async (request, reply) => {
    const stream = streamOf(reply);
    if (stream && !isOpenEnded(request.url)) {
      const timer = setTimeout(() => stream.destroy(), REQUEST_ARRIVAL_MS).unref();
      request.raw.once('end', () => clearTimeout(timer));
      // A stream that is reset emits no end; without this, the timer would keep it in memory.
      stream.once('close', () => clearTimeout(timer));
    }
    // Not immediately: the response's trailers are still being sent.
    stream?.once('finish', () => {
      if (!stream.readableEnded) setTimeout(() => stream.destroy(), AFTER_RESPONSE_MS).unref();
    });
  });

  const server = app.server as unknown as Http2Server;
  server.on('session', (session) => session.settings({ maxConcurrentStreams: MAX_STREAMS }));
}
