import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { currentSpan, type Span, type Tracer } from '../../common/tracing.ts';
import type { Operation } from '../finished-request.ts';
import type { GatewayMetrics } from '../metrics.ts';
import type { RequestObserver } from '../observation.ts';

/** Tells of every request how it ended, once its caller has the answer or is gone. Without anybody to tell, it does nothing. */
export function observeRequests(
  app: FastifyInstance,
  observe: RequestObserver | undefined,
  metrics: GatewayMetrics | undefined,
  tracer: Tracer | undefined,
): void {
  if (!observe && !tracer) return;
  app.addHook('onRequest', (request, reply, done) => {
    request.startedAt = performance.now();
    metrics?.requestBegan();
    const operation = request.routeOptions.config?.operation ?? 'other';
    const traceparent = request.headers.traceparent;
    const span = tracer?.begin(operation, typeof traceparent === 'string' ? traceparent : undefined);
    reply.raw.once('close', () => {
      metrics?.requestEnded();
      tell(request, reply, operation, span);
    });
    if (span) currentSpan.run(span, done);
    else done();
  });
  app.addHook('onSend', (request, _reply, _payload, done) => {
    request.isAnswered = true;
    done();
  });

  function tell(request: FastifyRequest, reply: FastifyReply, operation: Operation, span: Span | undefined): void {
    const { caller, problemCode, isAnswered } = request;
    const finished = {
      requestId: request.id,
      operation,
      status: isAnswered ? reply.statusCode : undefined,
      outcome: isAnswered ? (problemCode ?? ('ok' as const)) : ('not_answered' as const),
      replayed: request.replayed,
      leadId: request.leadId,
      studioId: caller?.studioId,
      apiKeyId: caller?.apiKeyId,
      durationMs: Math.round((performance.now() - request.startedAt) * 100) / 100,
    };
    span?.end({ failed: isAnswered && reply.statusCode >= 500, attributes: finished });
    observe?.(finished);
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
