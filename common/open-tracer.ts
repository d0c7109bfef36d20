import type { Logger } from 'pino';
import type { Metrics } from './metrics.ts';
import type { TracingConfig } from './settings.ts';
import type { Tracer } from './tracing.ts';

/** Opens the tracer of a process. Without an endpoint it returns undefined, and does not load the OpenTelemetry packages. */
export async function openTracer(
  processName: string,
  config: TracingConfig,
  log: Logger,
  registry: Metrics | undefined,
): Promise<Tracer | undefined> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG } = config;
  if (endpoint === undefined) return undefined;
  const { createOtlpTracer } = await import('./otlp-tracer.ts');
  const tracer = createOtlpTracer(processName, endpoint, log, [OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG]);
  registry?.countDroppedSpans(tracer);
  return tracer;
}
