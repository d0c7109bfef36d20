import { Code, ConnectError, type Interceptor } from '@connectrpc/connect';
import type { FastifyBaseLogger } from 'fastify';

/** Writes one line per call: which, how it ended, how long it took. Never what it carried. */
export function logCalls(log: FastifyBaseLogger): Interceptor {
  return (next) => async (request) => {
    const started = performance.now();
    let outcome = 'ok';
    try {
      return await next(request);
    } catch (error) {
      outcome = Code[ConnectError.from(error).code];
      throw error;
    } finally {
      log.info({
        rpc: `${request.service.typeName}/${request.method.name}`,
        outcome,
        durationMs: Math.round(performance.now() - started),
        requestId: request.header.get('x-request-id') ?? undefined,
      });
    }
  };
}
