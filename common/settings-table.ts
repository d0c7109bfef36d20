/** Traits of a setting other than how its text is parsed. */
export interface SettingTraits {
  /** The default. Without one, the setting is optional. */
  readonly fallback?: string;
  /** Whether NAME_FILE may name a file with the value, which keeps it out of the environment. */
  readonly fromFile?: boolean;
  /** Whether the service is less protected without it. An empty value is then a fault. */
  readonly protects?: boolean;
}

/**
 * Every setting of the core, the gateway and the relay, in the order of `docs/reference/settings.md`, which explains them. Processes that
 * share an environment also see each other's settings.
 */
export const SETTINGS = {
  CORE_HOST: { fallback: '127.0.0.1' },
  CORE_PORT: { fallback: '50051' },
  CORE_TOKEN: { protects: true, fromFile: true },
  CORE_CALLERS_FILE: { protects: true },
  CORE_TLS_CERT_FILE: { protects: true },
  CORE_TLS_KEY_FILE: { protects: true },
  CORE_TLS_CLIENT_CA_FILE: { protects: true },
  CORE_CONNECTION_MAX_AGE_MS: { fallback: '300000' },
  CORE_REFLECTION: { fallback: 'no' },
  DATABASE_URL: { fallback: 'sqlite:data/lead-intake.db', fromFile: true },
  CORE_METRICS_ADDRESS: {},
  LOG_LEVEL: { fallback: 'info' },
  OTEL_EXPORTER_OTLP_ENDPOINT: {},
  OTEL_TRACES_SAMPLER: { fallback: 'parentbased_always_on' },
  OTEL_TRACES_SAMPLER_ARG: { fallback: '1' },
  REUSE_PORT: { fallback: 'no' },
  SHUTDOWN_DRAIN_MS: { fallback: '1000' },
  GATEWAY_HOST: { fallback: '127.0.0.1' },
  GATEWAY_PORT: { fallback: '8080' },
  PUBLIC_URL: {},
  TRUSTED_PROXIES: { protects: true },
  LOG_CLIENT_ADDRESSES: { fallback: 'network' },
  GATEWAY_REQUEST_LOG: { fallback: 'no' },
  CORE_URL: {},
  CORE_CA_FILE: { protects: true },
  CORE_CLIENT_CERT_FILE: { protects: true },
  CORE_CLIENT_KEY_FILE: { protects: true },
  REDIS_URL: { protects: true, fromFile: true },
  REDIS_CLUSTER: { fallback: 'no' },
  REDIS_KEY_PREFIX: { protects: true },
  QUOTA_LIMIT: { protects: true, fallback: '600' },
  QUOTA_STUDIO_LIMIT: { protects: true },
  QUOTA_WINDOW_SECONDS: { protects: true, fallback: '60' },
  GATEWAY_METRICS_ADDRESS: {},
  KEPT_PACKAGES_FOLDER: {},
  RELAY_CORE_ADDRESS: { fallback: 'http://127.0.0.1:50051' },
  RELAY_TOKEN: { protects: true, fromFile: true },
  RELAY_ENDPOINTS_FILE: { protects: true },
  RELAY_CONCURRENCY: { fallback: '8' },
  RELAY_METRICS_ADDRESS: {},
} as const satisfies Readonly<Record<string, SettingTraits>>;

export type SettingName = keyof typeof SETTINGS;

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

export const findTraits = (name: SettingName): SettingTraits => SETTINGS[name];

/** Returns the environment variables that settings are read from. */
export const listVariables = (names: readonly SettingName[]): string[] =>
  names.flatMap((name) => (findTraits(name).fromFile ? [name, `${name}_FILE`] : [name]));
