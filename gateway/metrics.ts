import { Counter, Gauge, Histogram, type Registry } from '@prometheus-io/client';
import { createRegistry, DURATIONS, gauge, gaugeExpiries, SIZES } from '../common/metrics.ts';
import type { Readiness } from '../common/readiness.ts';
import type { TlsCredentials } from '../common/tls-credentials.ts';
import { MAX_PENDING_REQUESTS } from './exchange-batcher.ts';
import type { FinishedRequest } from './finished-request.ts';
import type { GatewayReadiness } from './plugins/health.ts';
import { PROBLEM_CODES, PROBLEMS } from './problems.ts';
import type { Quota } from './quota/quota-port.ts';

export type QuotaOutcome = 'admitted' | 'limited' | 'delayed' | 'unavailable';

/** The gateway's metrics. Each label has a closed list of values; none comes from a caller. */
export interface GatewayMetrics {
  readonly registry: Registry;
  /** A request is in flight between these two calls. */
  requestBegan(): void;
  requestEnded(): void;
  requestFinished(finished: FinishedRequest): void;
  quotaChecked(outcome: QuotaOutcome, durationMs: number): void;
  /** Records a message to the core and its number of requests. */
  batchSent(operation: string, requests: number): void;
  /** Exports the number of requests that wait for the core. */
  watchWaiting(operation: string, waiting: () => number): void;
  /** Exports when the certificates expire. */
  watchCertificates(credentials: TlsCredentials): void;
  /** Exports whether the gateway's dependencies are ready, and whether the gateway is stopping. */
  watchReadiness(readiness: GatewayReadiness): void;
  watchQuota(quota: Quota): void;
}

/** Exported from the start, so that `increase()` sees the first fault. */
const OPERATIONS = ['createLead', 'getLead', 'listLeads'] as const;
const INITIAL_OUTCOMES = ['ok', ...PROBLEM_CODES.filter((code) => PROBLEMS[code].status >= 500)];

export function createGatewayMetrics(): GatewayMetrics {
  const registry = createRegistry();
  const requests = new Histogram({
    name: 'lead_intake_gateway_request_duration_seconds',
    help: 'Duration of requests by operation and outcome (ok or the code of the problem).',
    labelNames: ['operation', 'outcome'],
    buckets: DURATIONS,
    registers: [registry],
  });
  for (const operation of OPERATIONS) for (const outcome of INITIAL_OUTCOMES) requests.zero({ operation, outcome });
  const quota = new Histogram({
    name: 'lead_intake_gateway_quota_duration_seconds',
    help: 'Duration of quota checks by decision: admitted, limited, delayed or unavailable.',
    labelNames: ['decision'],
    buckets: DURATIONS,
    registers: [registry],
  });
  for (const decision of ['admitted', 'limited', 'delayed', 'unavailable'] as const) quota.zero({ decision });
  const batches = new Histogram({
    name: 'lead_intake_gateway_core_batch_requests',
    help: 'Number of requests per message to the core, by operation.',
    labelNames: ['operation'],
    buckets: SIZES,
    registers: [registry],
  });
  const replays = new Counter({
    name: 'lead_intake_gateway_replays_total',
    help: 'Creations that were answered with the lead of an earlier request.',
    registers: [registry],
  });
  let inFlight = 0;
  gauge(registry, 'lead_intake_gateway_requests_under_way', 'Requests without a response.', () => inFlight);
  const waiting = new Map<string, () => number>();
  new Gauge({
    name: 'lead_intake_gateway_core_requests_waiting',
    help: `Requests that wait for the core, by operation; at most ${MAX_PENDING_REQUESTS}.`,
    labelNames: ['operation'],
    registers: [registry],
    collect() {
      for (const [operation, count] of waiting) this.set({ operation }, count());
    },
  });

  return {
    registry,
    requestBegan() {
      inFlight += 1;
    },
    requestEnded() {
      inFlight -= 1;
    },
    requestFinished({ operation, outcome, replayed, durationMs }) {
      requests.observe({ operation, outcome }, durationMs / 1000);
      if (replayed) replays.inc();
    },
    quotaChecked: (outcome, durationMs) => quota.observe({ decision: outcome }, durationMs / 1000),
    batchSent: (operation, size) => batches.observe({ operation }, size),
    watchWaiting: (operation, count) => void waiting.set(operation, count),
    watchCertificates: (credentials) =>
      gaugeExpiries(registry, 'lead_intake_gateway_certificate_expiry_timestamp_seconds', credentials),
    watchQuota(quota) {
      gauge(
        registry,
        'lead_intake_gateway_quota_counted_ratio',
        'The share of studios whose requests can be counted; less than 1 while a node of a Redis Cluster fails.',
        () => quota.countedShare(),
      );
    },
    watchReadiness({ core, quota, isStopping }) {
      const isUp = (part: Readiness) => async () => Number((await part.fault()) === undefined);
      gauge(registry, 'lead_intake_gateway_core_up', 'Whether the core would serve a call.', isUp(core));
      gauge(registry, 'lead_intake_gateway_quota_up', 'Whether requests can be counted.', isUp(quota));
      gauge(registry, 'lead_intake_gateway_stopping', 'Whether the gateway is stopping.', () => Number(isStopping()));
    },
  };
}
