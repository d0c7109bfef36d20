import { isIP } from 'node:net';
import { type CoreAccess, certificateFaults } from '../common/core-connection.ts';
import { Secret } from '../common/secret.ts';
import {
  address,
  commonSettings,
  type Environment,
  file,
  findSettingFile,
  folder,
  hostOfUrl,
  httpUrl,
  type IgnoredSettings,
  ignoredSettings,
  integer,
  oneOf,
  type Parsers,
  port,
  readSettings,
  type SettingsOf,
  text,
  yesOrNo,
} from '../common/settings.ts';
import { MAX_WINDOW_SECONDS, type QuotaPolicy } from './admission/quota/quota-port.ts';
import { readSentinelAddress } from './admission/quota/sentinel-address.ts';
import { ADDRESS_LOGGING } from './client-address.ts';

export const gatewaySettings = {
  ...commonSettings,
  GATEWAY_HOST: text,
  GATEWAY_PORT: port,
  PUBLIC_URL: httpUrl,
  TRUSTED_PROXIES: proxies,
  LOG_CLIENT_ADDRESSES: oneOf(...ADDRESS_LOGGING),
  GATEWAY_REQUEST_LOG: yesOrNo,
  CORE_URL: httpUrl,
  CORE_CA_FILE: file,
  CORE_CLIENT_CERT_FILE: file,
  CORE_CLIENT_KEY_FILE: file,
  REDIS_URL: redisUrl,
  REDIS_CLUSTER: yesOrNo,
  REDIS_KEY_PREFIX: keyPrefix,
  QUOTA_LIMIT: integer(1, 1_000_000_000),
  QUOTA_STUDIO_LIMIT: integer(1, 1_000_000_000),
  QUOTA_WINDOW_SECONDS: integer(1, MAX_WINDOW_SECONDS),
  GATEWAY_METRICS_ADDRESS: address,
  KEPT_PACKAGES_FOLDER: folder,
} satisfies Parsers;

/** The values of the gateway's settings, with defaults for addresses that derive from others. */
export type GatewayConfig = SettingsOf<typeof gatewaySettings> &
  IgnoredSettings &
  CoreAccess & { readonly PUBLIC_URL: string };

declare module 'fastify' {
  interface FastifyInstance {
    readonly config: GatewayConfig;
  }
}

/** @throws SettingsError */
export function readGatewayConfig(env: Environment): GatewayConfig {
  const config = readSettings(gatewaySettings, env, combinationFaults);
  return {
    ...config,
    PUBLIC_URL: config.PUBLIC_URL ?? formatHttpUrl(config.GATEWAY_HOST, config.GATEWAY_PORT),
    CORE_URL: config.CORE_URL ?? formatHttpUrl(config.CORE_HOST, config.CORE_PORT),
    ...ignoredSettings(gatewaySettings, env),
    coreTokenFile: findSettingFile('CORE_TOKEN', env),
  };
}

/** Returns the default limits, which keys and studios may override. */
export const quotaPolicy = (config: GatewayConfig): QuotaPolicy => ({
  limit: config.QUOTA_LIMIT,
  studioLimit: config.QUOTA_STUDIO_LIMIT,
  windowSeconds: config.QUOTA_WINDOW_SECONDS,
});

/** Returns a summary of the settings for the log. */
export function gatewaySummary(config: GatewayConfig): object {
  const { CORE_TOKEN, CORE_CLIENT_CERT_FILE, CORE_URL, REDIS_URL, REDIS_CLUSTER } = config;
  return {
    tls: CORE_URL.startsWith('https:'),
    presents: [CORE_TOKEN && 'CORE_TOKEN', CORE_CLIENT_CERT_FILE && 'CORE_CLIENT_CERT_FILE'].filter(Boolean),
    trusts: config.TRUSTED_PROXIES ?? [],
    countsIn: REDIS_URL ? (REDIS_CLUSTER ? 'Redis Cluster' : 'Redis') : 'the memory of this process',
    ...quotaPolicy(config),
  };
}

function combinationFaults(config: SettingsOf<typeof gatewaySettings>): string[] {
  const faults = certificateFaults(config, 'CORE_URL', config.CORE_URL);
  const { PUBLIC_URL = '', REDIS_URL, REDIS_CLUSTER } = config;
  if (!/^[\w.:/[\]~%-]*$/.test(PUBLIC_URL)) {
    faults.push(
      'PUBLIC_URL may have letters, digits and - . _ ~ % / in its path, and nothing else: it is a part of each page of /docs',
    );
  }
  if (config.REUSE_PORT && !REDIS_URL) {
    faults.push('REUSE_PORT needs REDIS_URL: in memory, each process would count on its own');
  }
  if (config.REDIS_KEY_PREFIX && !REDIS_URL) faults.push('REDIS_KEY_PREFIX needs REDIS_URL');
  if (REDIS_CLUSTER && REDIS_URL && /^rediss?:\/\/[^/]*\/0*[1-9]/.test(REDIS_URL.reveal())) {
    faults.push('REDIS_URL names a database, and a Redis Cluster has only one: leave its number out');
  }
  if (REDIS_CLUSTER && !REDIS_URL) faults.push('REDIS_CLUSTER needs REDIS_URL, the address of a node of it');
  if (REDIS_CLUSTER && REDIS_URL && readSentinelAddress(REDIS_URL.reveal())) {
    faults.push('REDIS_CLUSTER must be no when REDIS_URL names sentinels');
  }
  return faults;
}

function formatHttpUrl(host: string, port: number): string {
  return `http://${hostOfUrl(host)}:${port}`;
}

/** Parses an address of Redis. It is a secret, because it may contain a password. */
function redisUrl(value: string): Secret {
  if (readSentinelAddress(value)) return new Secret(value);
  const url = URL.parse(value);
  // Query parameters would override options of the client, such as retries. A scheme in capitals would disable TLS. A database that is not
  // a number would become NaN, and fail only after the connection.
  const isPlain = /^rediss?:\/\/[^?#]*$/.test(value) && /^\/?\d*$/.test(url?.pathname ?? '');
  if (!url || !isPlain || !isPercentEncoded(url)) {
    throw new Error(
      'must be redis://… or rediss://…, with nothing but the number of a database after the host, or redis+sentinel://HOST,HOST/NAME',
    );
  }
  return new Secret(value);
}

/** Parses addresses and networks. No network may include everybody: each client could then claim any address. */
function proxies(value: string): string[] {
  const parts = value.split(',').map((part) => part.trim());
  for (const part of parts) {
    const [address = '', bits = '', ...more] = part.split('/');
    const max = isIP(address) === 4 ? 32 : 128;
    const isNetwork = /^\d{1,3}$/.test(bits) && Number(bits) > 0 && Number(bits) <= max;
    if (isIP(address) === 0 || address.includes('%') || more.length > 0 || (part.includes('/') && !isNetwork)) {
      throw new Error('must be addresses and networks of proxies, such as 10.0.0.5,10.1.0.0/16,fd00::/8');
    }
  }
  return parts;
}

/** Refuses braces: in the keys of a Redis Cluster they select the node. */
function keyPrefix(value: string): string {
  if (!/^[\w.:-]{1,64}$/.test(value)) throw new Error('must be 1 to 64 of the characters A-Z a-z 0-9 _ . : -');
  return value;
}

/** Returns whether the credentials can be decoded. The client's own error would not name the setting. */
function isPercentEncoded({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}
