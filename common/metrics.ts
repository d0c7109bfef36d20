import cluster from 'node:cluster';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import {
  type Aggregator,
  ClusterRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  Registry,
  type RegistryContentType,
} from '@prometheus-io/client';
import type { Logger } from 'pino';
import type { Address } from './settings.ts';
import type { TlsCredentials } from './tls-credentials.ts';

/** Upper bounds of durations; seconds. */
export const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Upper bounds of how many go together. */
export const SIZES = [1, 2, 4, 8, 16, 32, 64, 128];

/** A registry that has what every process tells: its build, its memory and processor time, how late its event loop is. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'));
  new Gauge({
    name: 'lead_intake_build_info',
    help: 'What runs; always 1.',
    labelNames: ['version', 'node'],
    registers: [registry],
    aggregator: 'first',
  }).set({ version, node: process.version }, 1);
  return registry;
}

/**
 * A gauge that is looked at when it is asked for.
 *
 * @param aggregator what several processes on one port are told of as
 */
export function gauge(
  registry: Registry,
  name: string,
  help: string,
  look: () => number | Promise<number>,
  aggregator: Aggregator = 'sum',
): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    aggregator,
    async collect() {
      this.set(await look());
    },
  });
}

/** A gauge of when what TLS is spoken with expires, by file. */
export function gaugeExpiries(registry: Registry, name: string, credentials: TlsCredentials): void {
  new Gauge({
    name,
    help: 'When the certificates of a file that are in use expire; seconds since 1970.',
    labelNames: ['file'],
    registers: [registry],
    aggregator: 'min',
    collect() {
      for (const [file, expiry] of credentials.expiries) this.set({ file }, expiry.getTime() / 1000);
    },
  });
}

/** A port with nothing but metrics. */
export interface MetricsServer {
  /** Undefined: another process serves what this one counts. */
  readonly url: string | undefined;
  close(): Promise<void>;
}

/**
 * Serves a registry in Prometheus' text format, at `/metrics`, without asking who reads it; where there is none, nothing. One of
 * several processes on one port tells that which sees to them.
 *
 * @throws Error when the port is taken
 */
export async function serveMetrics(
  registry: Registry | undefined,
  where: Address | undefined,
  log: Logger,
): Promise<MetricsServer | undefined> {
  if (!registry || !where) return undefined;
  if (!cluster.isWorker)
    return serve({ metrics: () => registry.metrics(), contentType: registry.contentType }, where, log);
  ClusterRegistry.setRegistries(registry);
  // The package's types leave out that it can be shut down.
  const shared = new ClusterRegistry() as ClusterRegistry<RegistryContentType> & { shutdown(): Promise<void> };
  // What it has counted stays counted when another takes its place.
  return {
    url: undefined,
    async close() {
      ClusterRegistry.setRegistries(countsIn(registry));
      // Should the other process be gone, there is nobody to tell.
      await shared.shutdown().catch(() => {});
    },
  };
}

/** What goes on counting: of states, nothing is left when a process is gone. */
function countsIn(registry: Registry): Registry {
  const counts = new Registry();
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name);
    if (metric instanceof Counter || metric instanceof Histogram) counts.registerMetric(metric);
  }
  return counts;
}

/** Serves what all processes tell together that this one has begun. @throws Error when the port is taken */
export async function serveClusterMetrics(where: Address | undefined, log: Logger): Promise<MetricsServer | undefined> {
  if (!where) return undefined;
  const registry = new ClusterRegistry();
  return serve({ metrics: () => registry.clusterMetrics(), contentType: registry.contentType }, where, log);
}

/** What metrics are told from. */
interface Told {
  readonly contentType: string;
  metrics(): Promise<string>;
}

async function serve(registry: Told, where: Address, log: Logger): Promise<MetricsServer> {
  const server = createServer(async ({ url, method }, response) => {
    if (url !== '/metrics' || method !== 'GET') return response.writeHead(404).end();
    const text = await registry.metrics().catch(() => undefined);
    if (text === undefined) return response.writeHead(500).end();
    return response.writeHead(200, { 'content-type': registry.contentType }).end(text);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(where.port, where.host, resolve);
  });
  const { address, family, port } = server.address() as AddressInfo;
  const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}/metrics`;
  log.info({ url }, 'metrics are told');
  return {
    url,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
