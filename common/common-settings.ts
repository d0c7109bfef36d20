import { MAX_DRAIN_MS } from './deadlines.ts';
import { bearerToken, httpUrl, integer, oneOf, port, ratio, type SettingsOf, text, yesOrNo } from './settings.ts';

/** The names of OpenTelemetry's samplers. */
const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/** The settings that gateway and core share. */
export const commonSettings = {
  CORE_HOST: { parse: text, fallback: '127.0.0.1', about: 'address the core listens on' },
  CORE_PORT: { parse: port, fallback: '50051', about: 'port the core listens on' },
  CORE_TOKEN: {
    protects: true,
    parse: bearerToken,
    fromFile: true,
    about:
      'bearer token that callers present to the core, at least 32 characters; may be unset only while the core listens on loopback',
  },
  LOG_LEVEL: {
    parse: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    fallback: 'info',
    about: 'least severe log line to write: fatal, error, warn, info, debug, trace or silent',
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    parse: httpUrl,
    about: 'base address of an OpenTelemetry receiver (OTLP over HTTP) that traces are sent to; unset: no tracing',
  },
  OTEL_TRACES_SAMPLER: {
    parse: oneOf(...SAMPLERS),
    fallback: 'parentbased_always_on',
    about: 'which traces are sent, one of the names of OpenTelemetry; with `parentbased_…` a caller may decide',
  },
  OTEL_TRACES_SAMPLER_ARG: {
    parse: ratio,
    fallback: '1',
    about: 'the share of traces that is sent with `traceidratio` or `parentbased_traceidratio`, from 0 to 1',
  },
  REUSE_PORT: {
    parse: yesOrNo,
    fallback: 'no',
    about:
      'whether other processes, each with `yes`, may listen on its port, and the operating system gives each some of the connections: yes or no; on Linux. Gateways need `REDIS_URL` for that',
  },
  SHUTDOWN_DRAIN_MS: {
    parse: integer(0, MAX_DRAIN_MS),
    fallback: '1000',
    about: 'how long a stopping process is not ready but still serves before it closes its port; milliseconds',
  },
} as const;

/** The settings of tracing. */
export type TracingConfig = Pick<
  SettingsOf<typeof commonSettings>,
  'OTEL_EXPORTER_OTLP_ENDPOINT' | 'OTEL_TRACES_SAMPLER' | 'OTEL_TRACES_SAMPLER_ARG'
>;
