import { commonSettings } from '../common/common-settings.ts';
import { hostOfUrl } from '../common/local-address.ts';
import { Secret } from '../common/secret.ts';
import {
  address,
  type Environment,
  file,
  httpUrl,
  integer,
  port,
  readSettings,
  type SettingFile,
  type SettingsOf,
  text,
  type UnusedVariables,
  unusedVariables,
  yesOrNo,
} from '../common/settings.ts';
import { MAX_WINDOW_SECONDS } from './quota/quota-port.ts';
import { readSentinelAddress } from './quota/sentinel-address.ts';

export const gatewaySettings = {
  GATEWAY_HOST: { parse: text, fallback: '127.0.0.1', about: 'address the gateway listens on' },
  GATEWAY_PORT: { parse: port, fallback: '8080', about: 'port the gateway listens on' },
  PUBLIC_URL: {
    parse: httpUrl,
    about: 'base address at which callers reach the gateway; unset: `http://GATEWAY_HOST:GATEWAY_PORT`',
  },
  CORE_HOST: commonSettings.CORE_HOST,
  CORE_PORT: commonSettings.CORE_PORT,
  CORE_URL: { parse: httpUrl, about: 'base address of the core; unset: `http://CORE_HOST:CORE_PORT`' },
  CORE_TOKEN: commonSettings.CORE_TOKEN,
  CORE_CA_FILE: {
    protects: true,
    parse: file,
    about: 'certificate authorities (PEM) that the certificate of the core is verified against',
  },
  CORE_CLIENT_CERT_FILE: {
    protects: true,
    parse: file,
    about:
      'certificate chain (PEM) that the gateway presents to the core, and so does the check of a core with mutual TLS',
  },
  CORE_CLIENT_KEY_FILE: { protects: true, parse: file, about: 'private key (PEM) of that certificate' },
  REDIS_URL: {
    protects: true,
    parse: redisUrl,
    fromFile: true,
    about:
      'where requests are counted, `redis://…`, `rediss://…` or `redis+sentinel://…`; unset: in memory, for a single gateway',
  },
  REDIS_CLUSTER: {
    parse: yesOrNo,
    fallback: 'no',
    about: 'whether `REDIS_URL` is the address of a node of a Redis Cluster: yes or no',
  },
  REDIS_KEY_PREFIX: {
    protects: true,
    parse: keyPrefix,
    about:
      'what the names of all entries in Redis begin with; needed when deployments share a database of Redis, or they count together. Unset: nothing',
  },
  QUOTA_LIMIT: {
    protects: true,
    parse: integer(1, 1_000_000_000),
    fallback: '600',
    about: 'maximum number of requests of a key per window',
  },
  QUOTA_STUDIO_LIMIT: {
    protects: true,
    parse: integer(1, 1_000_000_000),
    about: 'maximum number of requests of all keys of a studio per window; unset: only the limits of its keys apply',
  },
  QUOTA_WINDOW_SECONDS: {
    protects: true,
    parse: integer(1, MAX_WINDOW_SECONDS),
    fallback: '60',
    about: 'length of the window; seconds',
  },
  GATEWAY_METRICS_ADDRESS: {
    parse: address,
    about:
      '`HOST:PORT` at which the gateway serves metrics to Prometheus, at `/metrics`, without authentication; unset: not served',
  },
  LOG_LEVEL: commonSettings.LOG_LEVEL,
  OTEL_EXPORTER_OTLP_ENDPOINT: commonSettings.OTEL_EXPORTER_OTLP_ENDPOINT,
  OTEL_TRACES_SAMPLER: commonSettings.OTEL_TRACES_SAMPLER,
  OTEL_TRACES_SAMPLER_ARG: commonSettings.OTEL_TRACES_SAMPLER_ARG,
  REUSE_PORT: commonSettings.REUSE_PORT,
  SHUTDOWN_DRAIN_MS: commonSettings.SHUTDOWN_DRAIN_MS,
} as const;

/** The values of the gateway's settings, with defaults for the addresses that derive from others. */
export type GatewayConfig = SettingsOf<typeof gatewaySettings> &
  UnusedVariables & {
    readonly PUBLIC_URL: string;
    readonly CORE_URL: string;
    /** The file of CORE_TOKEN, if it comes from one. */
    readonly coreTokenFile: SettingFile | undefined;
  };

/** @throws SettingsError */
export function readGatewayConfig(env: Environment): GatewayConfig {
  const config = readSettings(gatewaySettings, env, rulesBetween);
  return {
    ...config,
    PUBLIC_URL: config.PUBLIC_URL ?? addressOf(config.GATEWAY_HOST, config.GATEWAY_PORT),
    CORE_URL: config.CORE_URL ?? addressOf(config.CORE_HOST, config.CORE_PORT),
    ...unusedVariables(gatewaySettings, env),
    coreTokenFile: env.CORE_TOKEN_FILE?.trim() ? file(env.CORE_TOKEN_FILE) : undefined,
  };
}

/** What the settings come to, for the log: whether the core is reached by TLS, with what, and where is counted. */
export function gatewaySummary(config: GatewayConfig): object {
  const { CORE_TOKEN, CORE_CLIENT_CERT_FILE, CORE_URL, REDIS_URL, REDIS_CLUSTER } = config;
  return {
    tls: CORE_URL.startsWith('https:'),
    presents: [CORE_TOKEN && 'CORE_TOKEN', CORE_CLIENT_CERT_FILE && 'CORE_CLIENT_CERT_FILE'].filter(Boolean),
    countsIn: REDIS_URL ? (REDIS_CLUSTER ? 'Redis Cluster' : 'Redis') : 'the memory of this process',
    limit: config.QUOTA_LIMIT,
    studioLimit: config.QUOTA_STUDIO_LIMIT,
    windowSeconds: config.QUOTA_WINDOW_SECONDS,
  };
}

function rulesBetween(config: SettingsOf<typeof gatewaySettings>): string[] {
  const faults: string[] = [];
  const {
    CORE_CA_FILE,
    CORE_CLIENT_CERT_FILE,
    CORE_CLIENT_KEY_FILE,
    CORE_URL,
    REDIS_URL,
    REDIS_CLUSTER,
    REDIS_KEY_PREFIX,
  } = config;
  if (!CORE_CLIENT_CERT_FILE !== !CORE_CLIENT_KEY_FILE) {
    faults.push('CORE_CLIENT_CERT_FILE and CORE_CLIENT_KEY_FILE must be set together');
  }
  if (config.REUSE_PORT && !REDIS_URL) {
    faults.push('REUSE_PORT needs REDIS_URL: in memory, each process would count on its own');
  }
  if ((CORE_CA_FILE || CORE_CLIENT_CERT_FILE) && !CORE_URL?.startsWith('https:')) {
    faults.push('CORE_URL must be an https:// address when CORE_CA_FILE or CORE_CLIENT_CERT_FILE is set');
  }
  if (REDIS_KEY_PREFIX && !REDIS_URL) faults.push('REDIS_KEY_PREFIX needs REDIS_URL');
  if (REDIS_CLUSTER && REDIS_URL && /^rediss?:\/\/[^/]*\/0*[1-9]/.test(REDIS_URL.reveal())) {
    faults.push('REDIS_URL names a database, and a Redis Cluster has only one: leave its number out');
  }
  if (REDIS_CLUSTER && !REDIS_URL) faults.push('REDIS_CLUSTER needs REDIS_URL, the address of a node of it');
  if (REDIS_CLUSTER && REDIS_URL && readSentinelAddress(REDIS_URL.reveal())) {
    faults.push('REDIS_CLUSTER must be no when REDIS_URL names sentinels');
  }
  return faults;
}

function addressOf(host: string, port: number): string {
  return `http://${hostOfUrl(host)}:${port}`;
}

/** The value is a secret because the address may contain a password. */
function redisUrl(value: string): Secret {
  if (readSentinelAddress(value)) return new Secret(value);
  const url = URL.parse(value);
  // The client would turn a database that is not a number into NaN, and fail only once it is connected.
  if (!url || !/^rediss?:$/.test(url.protocol) || !/^\/?\d*$/.test(url.pathname) || !isPercentEncoded(url)) {
    throw new Error(
      'must be redis://… or rediss://…, with nothing but the number of a database after the host, or redis+sentinel://HOST,HOST/NAME',
    );
  }
  return new Secret(value);
}

/** Without braces: those in the names of a Redis Cluster determine the node. */
function keyPrefix(value: string): string {
  if (!/^[\w.:-]{1,64}$/.test(value)) throw new Error('must be 1 to 64 of the characters A-Z a-z 0-9 _ . : -');
  return value;
}

/** Checked here because the client's error would not name the setting. */
function isPercentEncoded({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}
