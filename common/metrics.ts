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

/** The maximum number of connections to the metrics port. Further ones are closed as they arrive. */
const MAX_METRICS_CONNECTIONS = 64;

/** How long such a connection may be idle; milliseconds. */
const METRICS_SILENCE_MS = 10_000;

/** Histogram buckets of durations; seconds. */
const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export const SIZES = [1, 2, 4, 8, 16, 32, 64, 128];

/** The values of a gauge, by label value. */
type Values = readonly (readonly [string, number])[];

/** The metrics of a process. Every process has these from the start: build, memory, processor time, event loop lag. */
export class Metrics extends Registry {
  constructor() {
    super();
    collectDefaultMetrics({ register: this });
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'));
    new Gauge({
      name: 'lead_intake_build_info',
      help: 'The running version; always 1.',
      labelNames: ['version', 'node'],
      registers: [this],
    }).set({ version, node: process.version }, 1);
    this.gaugeBy(
      'lead_intake_files_unusable',
      'Whether the files of a kind (certificates, callers, endpoints, tokens for the core) cannot be used as they are now; the former contents are in use.',
      { label: 'what', read: () => [...unusableFiles].map(([what, isUnusable]) => [what, Number(isUnusable)]) },
    );
    this.counter(
      'lead_intake_invariants_broken_total',
      'How often an invariant was broken, by its name in common/invariants.ts.',
      ['invariant'],
      (counter) => {
        for (const [invariant, count] of brokenInvariants) counter.inc({ invariant }, count);
      },
    );
    this.counter(
      'lead_intake_log_lines_dropped_total',
      'Log lines that standard output could not take.',
      [],
      (counter) => counter.inc(droppedLogLines()),
    );
  }

  /** @param count counts from 0 at each collection; without it, the counter is cumulative */
  counter<Label extends string = never>(
    name: string,
    help: string,
    labelNames: readonly Label[] = [],
    count?: (counter: Counter<Label>) => void,
  ): Counter<Label> {
    const collect = count && {
      collect(this: Counter<Label>) {
        this.reset();
        count(this);
      },
    };
    return new Counter({ name, help, labelNames: [...labelNames], registers: [this], ...collect });
  }

  countDroppedSpans(tracer: Tracer): void {
    this.counter('lead_intake_spans_dropped_total', 'Spans that their receiver did not accept.', [], (counter) =>
      counter.inc(tracer.dropped()),
    );
  }

  histogram<Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    buckets = DURATIONS,
  ): Histogram<Label> {
    return new Histogram({ name, help, labelNames: [...labelNames], buckets, registers: [this] });
  }

  /** Registers a gauge that is read at each collection. */
  gauge(name: string, help: string, read: () => number | Promise<number>): void {
    const registers = [this];
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set(await read());
      },
    });
  }

  /** Registers a gauge that is read for each value of a label at each collection. */
  gaugeBy(
    name: string,
    help: string,
    { label, read }: { readonly label: string; readonly read: () => Values | Promise<Values> },
  ): void {
    const registers = [this];
    new Gauge({
      name,
      help,
      labelNames: [label],
      registers,
      async collect() {
        const values = await read();
        this.reset();
        for (const [each, value] of values) this.set({ [label]: each }, value);
      },
    });
  }

  gaugeExpiries(name: string, credentials: TlsCredentials): void {
    const read = () =>
      [...credentials.loaded.expiries].map(([file, expiry]) => [file, expiry.getTime() / 1000] as const);
    this.gaugeBy(name, 'When the certificates in use from a file expire; seconds since 1970.', { label: 'file', read });
  }
}

export interface MetricsServer {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves a registry in Prometheus' text format at `/metrics`, without authentication. Returns undefined without a registry or address.
 *
 * @throws Error when the port is taken
 */
export async function serveMetrics(
  registry: Metrics | undefined,
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
