import { commonSettings } from '../common/common-settings.ts';
import { Secret } from '../common/secret.ts';
import {
  address,
  type Environment,
  file,
  httpUrl,
  integer,
  port,
  processCount,
  readSettings,
  type SettingFile,
  type SettingsOf,
  text,
  yesOrNo,
} from '../common/settings.ts';
import { MAX_WINDOW_SECONDS } from './quota/quota-port.ts';
import { readSentinelAddress } from './quota/sentinel-address.ts';

/** The gateway's settings. */
export const gatewaySettings = {
  GATEWAY_HOST: { parse: text, fallback: '127.0.0.1', about: 'address the gateway listens on' },
  GATEWAY_PORT: { parse: port, fallback: '8080', about: 'port the gateway listens on' },
  GATEWAY_PROCESSES: {
    parse: processCount,
    fallback: '1',
    about:
      'how many processes serve on that port; `auto`: as many as the machine has processors. More than one need `REDIS_URL`',
  },
  PUBLIC_URL: {
    parse: httpUrl,
    about: 'base address under which callers reach the gateway; unset: `http://GATEWAY_HOST:GATEWAY_PORT`',
  },
  CORE_HOST: commonSettings.CORE_HOST,
  CORE_PORT: commonSettings.CORE_PORT,
  CORE_URL: { parse: httpUrl, about: 'base address of the core; unset: `http://CORE_HOST:CORE_PORT`' },
  CORE_TOKEN: commonSettings.CORE_TOKEN,
  CORE_CA_FILE: { parse: file, about: 'authorities (PEM) that the core must have a certificate of' },
  CORE_CLIENT_CERT_FILE: { parse: file, about: 'certificate chain (PEM) that the gateway shows the core' },
  CORE_CLIENT_KEY_FILE: { parse: file, about: 'private key (PEM) to that certificate' },
  REDIS_URL: {
    parse: redisUrl,
    fromFile: true,
    about:
      'where requests are counted, `redis://…`, `rediss://…` or `redis+sentinel://…`; unset: in memory, for one gateway alone',
  },
  REDIS_CLUSTER: {
    parse: yesOrNo,
    fallback: 'no',
    about: 'whether `REDIS_URL` leads to a node of a Redis Cluster: yes or no',
  },
  QUOTA_LIMIT: { parse: integer(1, 1_000_000_000), fallback: '600', about: 'requests that a key may make per window' },
  QUOTA_STUDIO_LIMIT: {
    parse: integer(1, 1_000_000_000),
    about: 'requests that all keys of a studio together may make per window; unset: as many as its keys may',
  },
  QUOTA_WINDOW_SECONDS: {
    parse: integer(1, MAX_WINDOW_SECONDS),
    fallback: '60',
    about: 'length of that window; seconds',
  },
  GATEWAY_METRICS_ADDRESS: {
    parse: address,
    about:
      '`HOST:PORT` where the gateway tells its metrics to Prometheus, at `/metrics`, to whoever asks; unset: nowhere',
  },
  LOG_LEVEL: commonSettings.LOG_LEVEL,
  OTEL_EXPORTER_OTLP_ENDPOINT: commonSettings.OTEL_EXPORTER_OTLP_ENDPOINT,
  SHUTDOWN_DRAIN_MS: commonSettings.SHUTDOWN_DRAIN_MS,
} as const;

/** The values of the gateway's settings, with the addresses that follow from others. */
export type GatewayConfig = SettingsOf<typeof gatewaySettings> & {
  readonly PUBLIC_URL: string;
  readonly CORE_URL: string;
  /** The file that CORE_TOKEN comes from, if it does. */
  readonly coreTokenFile: SettingFile | undefined;
};

/** @throws SettingsError */
export function readGatewayConfig(env: Environment): GatewayConfig {
  const config = readSettings(gatewaySettings, env, rulesBetween);
  return {
    ...config,
    PUBLIC_URL: config.PUBLIC_URL ?? addressOf(config.GATEWAY_HOST, config.GATEWAY_PORT),
    CORE_URL: config.CORE_URL ?? addressOf(config.CORE_HOST, config.CORE_PORT),
    coreTokenFile: env.CORE_TOKEN_FILE ? file(env.CORE_TOKEN_FILE) : undefined,
  };
}

function rulesBetween(config: SettingsOf<typeof gatewaySettings>): string[] {
  const faults: string[] = [];
  const { CORE_CA_FILE, CORE_CLIENT_CERT_FILE, CORE_CLIENT_KEY_FILE, CORE_URL, REDIS_URL, REDIS_CLUSTER } = config;
  if (!CORE_CLIENT_CERT_FILE !== !CORE_CLIENT_KEY_FILE) {
    faults.push('CORE_CLIENT_CERT_FILE and CORE_CLIENT_KEY_FILE must be set together');
  }
  if (config.GATEWAY_PROCESSES > 1 && !config.REDIS_URL) {
    faults.push('GATEWAY_PROCESSES needs REDIS_URL: in memory, each process would count for itself');
  }
  if ((CORE_CA_FILE || CORE_CLIENT_CERT_FILE) && !CORE_URL?.startsWith('https:')) {
    faults.push('CORE_URL must be an https:// address when CORE_CA_FILE or CORE_CLIENT_CERT_FILE is set');
  }
  if (REDIS_CLUSTER && REDIS_URL && readSentinelAddress(REDIS_URL.reveal())) {
    faults.push('REDIS_CLUSTER must be no when REDIS_URL names sentinels');
  }
  return faults;
}

function addressOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** An address may carry a password, so its value is a secret. */
function redisUrl(value: string): Secret {
  if (readSentinelAddress(value)) return new Secret(value);
  const url = URL.parse(value);
  // Of anything else than a number the client would make none, and find that out when it is connected.
  if (!url || !/^rediss?:$/.test(url.protocol) || !/^\/?\d*$/.test(url.pathname) || !isPercentEncoded(url)) {
    throw new Error(
      'must be redis://… or rediss://…, with nothing but the number of a database behind the host, or redis+sentinel://HOST,HOST/NAME',
    );
  }
  return new Secret(value);
}

/** Of a name or password that is not, the client would say so without naming the setting. */
function isPercentEncoded({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}
