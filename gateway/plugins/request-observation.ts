import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GatewayMetrics } from '../metrics.ts';
import type { Operation, RequestObserver } from '../observation.ts';

/** Tells of every request how it ended, once its caller has the answer or is gone. Without anybody to tell, it does nothing. */
export function observeRequests(
  app: FastifyInstance,
  observe: RequestObserver | undefined,
  metrics: GatewayMetrics | undefined,
): void {
  if (!observe) return;
  app.addHook('onRequest', (request, reply, done) => {
    request.startedAt = performance.now();
    metrics?.requestBegan();
    reply.raw.once('close', () => {
      metrics?.requestEnded();
      tell(request, reply);
    });
    done();
  });
  app.addHook('onSend', (request, _reply, _payload, done) => {
    request.isAnswered = true;
    done();
  });

  function tell(request: FastifyRequest, reply: FastifyReply): void {
    const { caller, routeOptions, problemCode, isAnswered } = request;
    observe?.({
      requestId: request.id,
      operation: routeOptions.config?.operation ?? 'other',
      status: isAnswered ? reply.statusCode : undefined,
      outcome: isAnswered ? (problemCode ?? 'ok') : 'not_answered',
      replayed: request.replayed,
      leadId: request.leadId,
      studioId: caller?.studioId,
      apiKeyId: caller?.apiKeyId,
      durationMs: Math.round((performance.now() - request.startedAt) * 100) / 100,
    });
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** When it arrived, on the clock of `performance`. */
    startedAt: number;
    isAnswered: boolean;
    /** Of a creation: whether an earlier request had made the lead. */
    replayed: boolean | undefined;
    /** The lead that was created, read, or in the way. */
    leadId: string | undefined;
  }
  interface FastifyContextConfig {
    /** What the route is called where requests are counted. */
    operation?: Operation;
  }
}
