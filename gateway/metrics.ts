import { Counter, Gauge, Histogram, type Registry } from '@prometheus-io/client';
import { createRegistry, DURATIONS, gauge, gaugeExpiries, SIZES } from '../common/metrics.ts';
import type { Readiness } from '../common/readiness.ts';
import type { TlsCredentials } from '../common/tls-credentials.ts';
import { MAX_PENDING_REQUESTS } from './exchange-batcher.ts';
import type { FinishedRequest } from './finished-request.ts';
import type { GatewayReadiness } from './plugins/health.ts';

/** What became of asking the quota. */
export type QuotaOutcome = 'admitted' | 'limited' | 'unavailable';

/** Everything that the gateway counts. Each label has a closed list of values: nothing that a caller sends is one. */
export interface GatewayMetrics {
  readonly registry: Registry;
  /** A request is under way from the one to the other, answered or not. */
  requestBegan(): void;
  requestEnded(): void;
  requestFinished(finished: FinishedRequest): void;
  quotaAsked(outcome: QuotaOutcome, durationMs: number): void;
  /** A message with so many requests went to the core. */
  batchSent(operation: string, requests: number): void;
  /** Has the number of requests that wait for the core told. */
  watchWaiting(operation: string, waiting: () => number): void;
  /** Has it told how long the certificates last. */
  watchCertificates(credentials: TlsCredentials): void;
  /** Has it told whether what the gateway needs is there, and whether it means to stop. */
  watchReadiness(readiness: GatewayReadiness): void;
}

/** What is shown from the start, so that not even the first fault is missed. */
const OPERATIONS = ['createLead', 'getLead', 'listLeads'] as const;
const FROM_THE_START = ['ok', 'internal_error', 'integration_unavailable', 'integration_rate_unavailable'] as const;

export function createGatewayMetrics(): GatewayMetrics {
  const registry = createRegistry();
  const requests = new Histogram({
    name: 'lead_intake_gateway_request_duration_seconds',
    help: 'Requests by operation and outcome (ok or the code of the problem), and how long they took.',
    labelNames: ['operation', 'outcome'],
    buckets: DURATIONS,
    registers: [registry],
  });
  for (const operation of OPERATIONS) for (const outcome of FROM_THE_START) requests.zero({ operation, outcome });
  const quota = new Histogram({
    name: 'lead_intake_gateway_quota_duration_seconds',
    help: 'Requests that the quota admitted, limited, or could not count, and how long that took.',
    labelNames: ['decision'],
    buckets: DURATIONS,
    registers: [registry],
  });
  for (const decision of ['admitted', 'limited', 'unavailable'] as const) quota.zero({ decision });
  const batches = new Histogram({
    name: 'lead_intake_gateway_core_batch_requests',
    help: 'Messages to the core by operation, and how many requests each carried.',
    labelNames: ['operation'],
    buckets: SIZES,
    registers: [registry],
  });
  const replays = new Counter({
    name: 'lead_intake_gateway_replays_total',
    help: 'Creations that were answered with the lead of an earlier request.',
    registers: [registry],
  });
  let underWay = 0;
  gauge(registry, 'lead_intake_gateway_requests_under_way', 'Requests that have no answer yet.', () => underWay);
  const waiting = new Map<string, () => number>();
  new Gauge({
    name: 'lead_intake_gateway_core_requests_waiting',
    help: `Requests by operation that wait for the core; at most ${MAX_PENDING_REQUESTS} do.`,
    labelNames: ['operation'],
    registers: [registry],
    collect() {
      for (const [operation, count] of waiting) this.set({ operation }, count());
    },
  });

  return {
    registry,
    requestBegan() {
      underWay += 1;
    },
    requestEnded() {
      underWay -= 1;
    },
    requestFinished({ operation, outcome, replayed, durationMs }) {
      requests.observe({ operation, outcome }, durationMs / 1000);
      if (replayed) replays.inc();
    },
    quotaAsked: (outcome, durationMs) => quota.observe({ decision: outcome }, durationMs / 1000),
    batchSent: (operation, size) => batches.observe({ operation }, size),
    watchWaiting: (operation, count) => void waiting.set(operation, count),
    watchCertificates: (credentials) =>
      gaugeExpiries(registry, 'lead_intake_gateway_certificate_expiry_timestamp_seconds', credentials),
    watchReadiness({ core, quota, isStopping }) {
      const asked = (part: Readiness) => async () => Number((await part.fault()) === undefined);
      gauge(registry, 'lead_intake_gateway_core_up', 'Whether the core would serve a call.', asked(core), 'min');
      gauge(registry, 'lead_intake_gateway_quota_up', 'Whether requests can be counted.', asked(quota), 'min');
      gauge(registry, 'lead_intake_gateway_stopping', 'Whether it means to stop.', () => Number(isStopping()), 'max');
    },
  };
}
