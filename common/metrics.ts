import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from '@prometheus-io/client';
import type { Logger } from 'pino';
import { brokenInvariants } from './invariants.ts';
import { droppedLogLines } from './logger.ts';
import { type Address, hostOfUrl } from './settings.ts';
import type { TlsCredentials } from './tls-credentials.ts';
import type { Tracer } from './tracing.ts';
import { unusableFiles } from './watched-files.ts';

export type { Registry };

/** Connections to the metrics' port; a further one is closed as it arrives. */
const MAX_METRICS_CONNECTIONS = 64;

/** How long such a connection may bring and take nothing; milliseconds. */
const METRICS_SILENCE_MS = 10_000;

/** Histogram buckets of durations; seconds. */
const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export const SIZES = [1, 2, 4, 8, 16, 32, 64, 128];

/** Creates a registry with the metrics of every process: build, memory, processor time, event loop lag. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'));
  new Gauge({
    name: 'lead_intake_build_info',
    help: 'The running version; always 1.',
    labelNames: ['version', 'node'],
    registers: [registry],
  }).set({ version, node: process.version }, 1);
  gaugeBy(
    registry,
    'lead_intake_files_unusable',
    'Whether the files of a kind (certificates, callers, endpoints, tokens for the core) cannot be used as they are now; the former contents are in use.',
    { label: 'what', read: () => [...unusableFiles].map(([what, isUnusable]) => [what, Number(isUnusable)] as const) },
  );
  new Counter({
    name: 'lead_intake_invariants_broken_total',
    help: 'How often what always holds did not, by its name in common/invariants.ts.',
    labelNames: ['invariant'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [invariant, count] of brokenInvariants) this.inc({ invariant }, count);
    },
  });
  counter(
    registry,
    'lead_intake_log_lines_dropped_total',
    'Log lines that standard output could not take.',
    droppedLogLines,
  );
  return registry;
}

export const histogram = <Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly Label[],
  buckets = DURATIONS,
): Histogram<Label> => new Histogram({ name, help, labelNames: [...labelNames], buckets, registers: [registry] });

export function countDroppedSpans(registry: Registry, tracer: Tracer): void {
  counter(registry, 'lead_intake_spans_dropped_total', 'Spans that their receiver did not accept.', tracer.dropped);
}

/** Registers a counter that is read when metrics are collected. */
function counter(registry: Registry, name: string, help: string, read: () => number): void {
  new Counter({
    name,
    help,
    registers: [registry],
    collect() {
      this.reset();
      this.inc(read());
    },
  });
}

/** Registers a gauge that is read when metrics are collected. */
export function gauge(registry: Registry, name: string, help: string, read: () => number | Promise<number>): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      this.set(await read());
    },
  });
}

/** The values of a gauge, each with that of its label. */
type Values = readonly (readonly [string, number])[];

/** Registers a gauge that is read for each value of a label when metrics are collected. */
export function gaugeBy(
  registry: Registry,
  name: string,
  help: string,
  { label, read }: { readonly label: string; readonly read: () => Values | Promise<Values> },
): void {
  new Gauge({
    name,
    help,
    labelNames: [label],
    registers: [registry],
    async collect() {
      const values = await read();
      this.reset();
      for (const [each, value] of values) this.set({ [label]: each }, value);
    },
  });
}

export function gaugeExpiries(registry: Registry, name: string, credentials: TlsCredentials): void {
  const read = () => [...credentials.expiries].map(([file, expiry]) => [file, expiry.getTime() / 1000] as const);
  const help = 'When the certificates in use from a file expire; seconds since 1970.';
  gaugeBy(registry, name, help, { label: 'file', read });
}

export interface MetricsServer {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves a registry in Prometheus' text format at `/metrics`, without authentication; returns undefined without a
 * registry or address.
 *
 * @throws Error when the port is taken
 */
export async function serveMetrics(
  registry: Registry | undefined,
  wanted: Address | undefined,
  log: Logger,
): Promise<MetricsServer | undefined> {
  if (!registry || !wanted) return undefined;
  const server = createServer(async ({ url = '', method }, response) => {
    const [path = ''] = url.split('?', 1);
    if (path !== '/metrics' || method !== 'GET') return response.writeHead(404).end();
    const text = await registry.metrics().catch(() => undefined);
    if (text === undefined) return response.writeHead(500).end();
    return response.writeHead(200, { 'content-type': registry.contentType }).end(text);
  });
  server.maxConnections = MAX_METRICS_CONNECTIONS;
  server.timeout = METRICS_SILENCE_MS;
  await once(server.listen(wanted), 'listening');
  const { address, port } = server.address() as AddressInfo;
  const url = `http://${hostOfUrl(address)}:${port}/metrics`;
  log.info({ url }, 'serving metrics');
  return {
    url,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
