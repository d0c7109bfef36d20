import type { FastifyInstance } from 'fastify';

/** Writes one line per answered request: who, what, how it ended, how long it took. Never what it carried. */
export function logRequests(app: FastifyInstance): void {
  app.addHook('onResponse', async (request, reply) => {
    request.log.info({
      method: request.method,
      route: request.routeOptions.url,
      status: reply.statusCode,
      code: request.problemCode,
      durationMs: Math.round(reply.elapsedTime),
      studioId: request.caller?.studioId,
      apiKeyId: request.caller?.apiKeyId,
    });
  });
}
