import { MAX_DRAIN_MS } from './deadlines.ts';
import { bearerToken, httpUrl, integer, oneOf, port, ratio, text, yesOrNo } from './settings.ts';

/** The parsers of the settings that gateway and core share. */
export const commonSettings = {
  CORE_HOST: text,
  CORE_PORT: port,
  CORE_TOKEN: bearerToken,
  LOG_LEVEL: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl,
  OTEL_TRACES_SAMPLER: oneOf(
    'always_on',
    'always_off',
    'traceidratio',
    'parentbased_always_on',
    'parentbased_always_off',
    'parentbased_traceidratio',
  ),
  OTEL_TRACES_SAMPLER_ARG: ratio,
  REUSE_PORT: yesOrNo,
  SHUTDOWN_DRAIN_MS: integer(0, MAX_DRAIN_MS),
} as const;

/** The settings of tracing. */
export interface TracingConfig {
  readonly OTEL_EXPORTER_OTLP_ENDPOINT: string | undefined;
  readonly OTEL_TRACES_SAMPLER: ReturnType<typeof commonSettings.OTEL_TRACES_SAMPLER>;
  readonly OTEL_TRACES_SAMPLER_ARG: number;
}
