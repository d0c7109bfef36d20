import { Gauge } from '@prometheus-io/client';
import { Metrics } from '../common/metrics.ts';
import type { TlsCredentials } from '../common/tls-credentials.ts';
import { ENDPOINT_STATES, type EndpointState } from './endpoint-health.ts';

/** Creates the relay's metrics. Labels are endpoint names and outcome codes. */
export function createRelayMetrics(
  endpoints: ReadonlyMap<string, { readonly state: EndpointState; readonly hasFeed: boolean }>,
  credentials: TlsCredentials,
) {
  const registry = new Metrics();
  const attempts = registry.histogram(
    'lead_intake_relay_attempt_duration_seconds',
    'Duration of attempts to send a webhook, by endpoint and outcome (DELIVERED or a code; of statuses the class).',
    ['endpoint', 'outcome'],
  );
  new Gauge({
    name: 'lead_intake_relay_endpoint_state',
    help: 'Whether an endpoint is in a state: open, slow, paused or gone.',
    labelNames: ['endpoint', 'state'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [endpoint, { state }] of endpoints) {
        for (const one of ENDPOINT_STATES) this.set({ endpoint, state: one }, Number(one === state));
      }
    },
  });
  registry.gaugeBy('lead_intake_relay_feed_up', 'Whether the core sends changes for an endpoint.', {
    label: 'endpoint',
    read: async () => [...endpoints].map(([endpoint, { hasFeed }]) => [endpoint, Number(hasFeed)] as const),
  });
  registry.gaugeExpiries('lead_intake_relay_certificate_expiry_timestamp_seconds', credentials);
  return {
    registry,
    attempted: (endpoint: string, code: string, durationMs: number) =>
      attempts.observe({ endpoint, outcome: code.replace(/^HTTP_(\d)\d*$/, 'HTTP_$1XX') }, durationMs / 1000),
  };
}

export type RelayMetrics = ReturnType<typeof createRelayMetrics>;
