import type { Logger } from 'pino';
import type { Tracer } from './tracing.ts';

/**
 * Opens the tracer of a process. Without an endpoint there is none, and the OpenTelemetry packages are not loaded.
 *
 * @param endpoint base address of an OTLP receiver over HTTP
 */
export async function openTracer(
  processName: string,
  endpoint: string | undefined,
  log: Logger,
): Promise<Tracer | undefined> {
  if (endpoint === undefined) return undefined;
  const { createOtlpTracer } = await import('./otlp-tracer.ts');
  return createOtlpTracer(processName, endpoint, log);
}
