import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { Metrics, SIZES } from '../common/metrics.ts';
import type { Readiness } from '../common/readiness.ts';
import type { TlsCredentials } from '../common/tls-credentials.ts';
import { currentSpan, type Span, type Tracer } from '../common/tracing.ts';
import type { Quota, QuotaDecision } from './admission/quota/quota-port.ts';
import { type AddressLogging, loggedAddress } from './client-address.ts';
import type { PresentedKey } from './key-check.ts';
import { type FaultyField, PROBLEM_CODES, PROBLEMS, type Problem, type ProblemCode } from './problems.ts';
import type { Operation } from './request.ts';

/** The readiness of the gateway's dependencies, and whether the gateway is stopping. */
export interface GatewayReadiness {
  readonly core: Readiness;
  readonly quota: Readiness;
  readonly isStopping: () => boolean;
}

declare module 'fastify' {
  interface FastifyInstance {
    readonly metrics: GatewayMetrics | undefined;
    readonly readiness: GatewayReadiness;
  }
}

/** How a request ended, without any of its content. */
interface FinishedRequest {
  readonly requestId: string;
  readonly operation: Operation;
  /** Undefined without a response. */
  readonly status: number | undefined;
  /** `not_answered`: the caller disconnected before the response. The core's log has the outcome. */
  readonly outcome: 'ok' | 'not_answered' | ProblemCode;
  /** For a creation: whether an earlier request had created the lead. */
  readonly replayed?: boolean | undefined;
  /** The lead that was created or read, or the open one that prevented a creation. */
  readonly leadId?: string | undefined;
  readonly studioId?: string | undefined;
  readonly apiKeyId?: string | undefined;
  /** Only for an invalid key: where the request came from, as far as LOG_CLIENT_ADDRESSES allows. */
  readonly client?: string | undefined;
  /** Only for a traced request. */
  readonly traceId?: string | undefined;
  readonly durationMs: number;
}

/** Describes a request that was refused before its operation was known. */
export const unknownRequest = (requestId: string, { status, code }: Problem): FinishedRequest => ({
  requestId,
  operation: 'other',
  status,
  outcome: code,
  durationMs: 0,
});

export type RequestObserver = (finished: FinishedRequest) => void;

/** Records an answered request in its studio's request log. */
export type RecordRequest = (finished: FinishedRequest, key: PresentedKey, faults: readonly FaultyField[]) => void;

/** Returns an observer that logs and counts every request; undefined when neither is enabled. */
export function requestObserver(log: Logger, metrics: GatewayMetrics | undefined): RequestObserver | undefined {
  const isLogged = log.isLevelEnabled('info');
  if (!isLogged && !metrics) return undefined;
  return (finished) => {
    metrics?.requestFinished(finished);
    if (isLogged) log.info(finished);
  };
}

/** Problems of requests without a known key, whose client may be logged. */
const UNKNOWN_KEY_CODES: readonly ProblemCode[] = ['integration_key_invalid', 'integration_rate_limited'];

/** Operations that are not traced, because they come every few seconds. */
const PROBES: readonly Operation[] = ['healthz', 'readyz'];

interface Observers {
  readonly observe: RequestObserver | undefined;
  readonly record: RecordRequest | undefined;
  readonly metrics: GatewayMetrics | undefined;
  readonly tracer: Tracer | undefined;
}

/** Observes a request, and calls `next` within its trace. */
export type ObserveRequest = (request: FastifyRequest, reply: FastifyReply, next: () => void) => void;

/** Returns a function that reports how a request ended, once its response is sent or its connection closed; undefined without observers. */
export function arrivalObserver(
  { observe, record, metrics, tracer }: Observers,
  addresses: AddressLogging,
): ObserveRequest | undefined {
  if (!observe && !record && !tracer) return undefined;
  return (request, reply, next) => {
    metrics?.countInFlight(1);
    const operation = request.routeOptions.config?.operation ?? 'other';
    const traceparent = request.headers.traceparent;
    const span = PROBES.includes(operation)
      ? undefined
      : tracer?.begin(operation, typeof traceparent === 'string' ? traceparent : undefined);
    reply.raw.once('close', () => {
      metrics?.countInFlight(-1);
      report(request, reply, operation, span);
    });
    if (span) currentSpan.run(span, next);
    else next();
  };

  function report(request: FastifyRequest, reply: FastifyReply, operation: Operation, span: Span | undefined): void {
    if (!observe && !record && !span?.isSent) return;
    const { key, problemCode, faults, isAnswered, replayed, leadId, arrivedAt } = request.state;
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
    const client =
      !key && problemCode && UNKNOWN_KEY_CODES.includes(problemCode)
        ? loggedAddress(request.clientAddress, addresses)
        : undefined;
    observe?.({ ...finished, client, traceId: span?.traceId });
    if (key) record?.(finished, key, faults);
  }
}

/**
 * Records the decisions and durations of a quota in metrics and traces.
 *
 * @param isTraced false for a quota in memory, which takes no time
 */
export function observedQuota(quota: Quota, metrics: GatewayMetrics | undefined, isTraced: boolean): Quota {
  if (!metrics && !isTraced) return quota;
  return {
    ...quota,
    async consume(caller, limits, patienceMs) {
      const startedAt = performance.now();
      const span = isTraced ? currentSpan.getStore()?.child('redis consume', { 'db.system.name': 'redis' }) : undefined;
      try {
        const decision = await quota.consume(caller, limits, patienceMs);
        span?.end({ failed: false, attributes: { admitted: decision.admitted } });
        metrics?.quotaChecked(toOutcome(decision), performance.now() - startedAt);
        return decision;
      } catch (error) {
        span?.end({ failed: true });
        metrics?.quotaChecked('unavailable', performance.now() - startedAt);
        throw error;
      }
    },
  };
}

const toOutcome = ({ admitted, waitMs }: QuotaDecision) => (admitted ? 'admitted' : waitMs > 0 ? 'delayed' : 'limited');

/** Outcomes whose series exist from the start, so that `increase()` sees the first fault. */
const OPERATIONS = ['createLead', 'getLead', 'listLeads'] as const;
const INITIAL_OUTCOMES = ['ok', ...PROBLEM_CODES.filter((code) => PROBLEMS[code].status >= 500)];

/** Creates the gateway's metrics. Each label has a closed list of values, and none comes from a caller. */
export function createGatewayMetrics() {
  const registry = new Metrics();
  const requests = registry.histogram(
    'lead_intake_gateway_request_duration_seconds',
    'Duration of requests by operation and outcome (ok or the code of the problem).',
    ['operation', 'outcome'],
  );
  for (const operation of OPERATIONS) for (const outcome of INITIAL_OUTCOMES) requests.zero({ operation, outcome });
  const quota = registry.histogram(
    'lead_intake_gateway_quota_duration_seconds',
    'Duration of quota checks by decision: admitted, limited, delayed or unavailable.',
    ['decision'],
  );
  for (const decision of ['admitted', 'limited', 'delayed', 'unavailable'] as const) quota.zero({ decision });
  const batches = registry.histogram(
    'lead_intake_gateway_core_batch_requests',
    'Number of requests per message to the core, by operation.',
    ['operation'],
    SIZES,
  );
  const replays = registry.counter(
    'lead_intake_gateway_replays_total',
    'Creations that were answered with the lead of an earlier request.',
  );
  const unrecorded = registry.counter(
    'lead_intake_gateway_requests_unrecorded_total',
    'Requests that are missing from the log of requests: too many at once (limit), or not recorded by the core (core).',
    ['reason'],
  );
  for (const reason of ['limit', 'core'] as const) unrecorded.inc({ reason }, 0);
  let inFlight = 0;
  registry.gauge('lead_intake_gateway_requests_under_way', 'Requests without a response.', () => inFlight);
  const waiting = new Map<string, () => number>();
  const help = 'Requests that wait for the core, by operation.';
  registry.gaugeBy('lead_intake_gateway_core_requests_waiting', help, {
    label: 'operation',
    read: async () => [...waiting].map(([operation, count]) => [operation, count()]),
  });

  return {
    registry,
    /** Counts a request that begins or ends. */
    countInFlight(change: 1 | -1) {
      inFlight += change;
    },
    requestFinished(finished: FinishedRequest) {
      requests.observe({ operation: finished.operation, outcome: finished.outcome }, finished.durationMs / 1000);
      if (finished.replayed) replays.inc();
    },
    requestsUnrecorded: (reason: 'limit' | 'core', count: number) => unrecorded.inc({ reason }, count),
    quotaChecked: (outcome: 'admitted' | 'limited' | 'delayed' | 'unavailable', durationMs: number) =>
      quota.observe({ decision: outcome }, durationMs / 1000),
    batchSent: (operation: string, size: number) => batches.observe({ operation }, size),
    watchWaiting: (operation: string, count: () => number) => void waiting.set(operation, count),
    /** Exports the state of the gateway and of its dependencies. */
    watch({ core, quota, isStopping }: GatewayReadiness, { countedShare }: Quota, credentials: TlsCredentials) {
      registry.gaugeExpiries('lead_intake_gateway_certificate_expiry_timestamp_seconds', credentials);
      registry.gauge(
        'lead_intake_gateway_quota_counted_ratio',
        'The share of studios whose requests can be counted; less than 1 while a node of a Redis Cluster fails.',
        countedShare,
      );
      const isUp = (part: Readiness) => async () => Number((await part.fault()) === undefined);
      registry.gauge('lead_intake_gateway_core_up', 'Whether the core would serve a call.', isUp(core));
      registry.gauge('lead_intake_gateway_quota_up', 'Whether requests can be counted.', isUp(quota));
      registry.gauge('lead_intake_gateway_stopping', 'Whether the gateway is stopping.', () => Number(isStopping()));
    },
  };
}

export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>;
