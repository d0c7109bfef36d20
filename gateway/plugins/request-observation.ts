import type { FastifyReply, FastifyRequest } from 'fastify';
import { currentSpan, type Span, type Tracer } from '../../common/tracing.ts';
import type { Operation } from '../finished-request.ts';
import type { GatewayMetrics } from '../metrics.ts';
import type { RequestObserver } from '../observation.ts';

/** Begin no traces: they come every few seconds, and say nothing of a request. */
const PROBES: readonly Operation[] = ['healthz', 'readyz'];

/** Observes a request, and calls `next` within its trace. */
export type ObserveRequest = (request: FastifyRequest, reply: FastifyReply, next: () => void) => void;

/**
 * Reports how each request ended, once its response is sent or its connection closed; undefined: nothing is observed.
 */
export function arrivalObserver(
  observe: RequestObserver | undefined,
  metrics: GatewayMetrics | undefined,
  tracer: Tracer | undefined,
): ObserveRequest | undefined {
  if (!observe && !tracer) return undefined;
  return (request, reply, next) => {
    metrics?.requestBegan();
    const operation = request.routeOptions.config?.operation ?? 'other';
    const traceparent = request.headers.traceparent;
    const span = PROBES.includes(operation)
      ? undefined
      : tracer?.begin(operation, typeof traceparent === 'string' ? traceparent : undefined);
    reply.raw.once('close', () => {
      metrics?.requestEnded();
      report(request, reply, operation, span);
    });
    if (span) currentSpan.run(span, next);
    else next();
  };

  function report(request: FastifyRequest, reply: FastifyReply, operation: Operation, span: Span | undefined): void {
    const { key, problemCode, isAnswered, replayed, leadId, arrivedAt } = request.state;
    const finished = {
      requestId: request.id,
      operation,
      status: isAnswered ? reply.statusCode : undefined,
      outcome: isAnswered ? (problemCode ?? ('ok' as const)) : ('not_answered' as const),
      replayed,
      leadId,
      studioId: key?.caller.studioId,
      apiKeyId: key?.caller.apiKeyId,
      durationMs: Math.round((performance.now() - arrivedAt) * 100) / 100,
    };
    span?.end({ failed: isAnswered && reply.statusCode >= 500, attributes: finished });
    observe?.({ ...finished, traceId: span?.traceId });
  }
}
