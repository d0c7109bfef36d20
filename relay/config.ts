import { type CoreAccess, certificateFaults } from '../common/core-connection.ts';
import {
  address,
  bearerToken,
  commonSettings,
  type Environment,
  file,
  findSettingFile,
  httpUrl,
  type IgnoredSettings,
  ignoredSettings,
  integer,
  type Parsers,
  parsedContents,
  readSettings,
  type SettingFile,
  type SettingsOf,
} from '../common/settings.ts';
import { type Endpoints, parseEndpoints } from './endpoints-file.ts';

export const relaySettings = {
  LOG_LEVEL: commonSettings.LOG_LEVEL,
  CORE_CA_FILE: file,
  CORE_CLIENT_CERT_FILE: file,
  CORE_CLIENT_KEY_FILE: file,
  RELAY_CORE_ADDRESS: httpUrl,
  RELAY_TOKEN: bearerToken,
  RELAY_ENDPOINTS_FILE: endpointsFile,
  RELAY_CONCURRENCY: integer(1, 100),
  RELAY_METRICS_ADDRESS: address,
} satisfies Parsers;

export type RelayConfig = SettingsOf<typeof relaySettings> &
  IgnoredSettings &
  CoreAccess & { readonly RELAY_ENDPOINTS_FILE: EndpointsFile };

interface EndpointsFile extends SettingFile {
  readonly endpoints: Endpoints;
}

/** @throws SettingsError */
export function readRelayConfig(env: Environment): RelayConfig {
  const config = readSettings(relaySettings, env, (values) => [
    ...certificateFaults(values, 'RELAY_CORE_ADDRESS', values.RELAY_CORE_ADDRESS),
    ...(values.RELAY_ENDPOINTS_FILE ? [] : ['RELAY_ENDPOINTS_FILE must name the file with the endpoints of webhooks']),
  ]);
  return {
    ...config,
    CORE_URL: config.RELAY_CORE_ADDRESS,
    CORE_TOKEN: config.RELAY_TOKEN,
    coreTokenFile: findSettingFile('RELAY_TOKEN', env),
    RELAY_ENDPOINTS_FILE: config.RELAY_ENDPOINTS_FILE as EndpointsFile,
    ...ignoredSettings(relaySettings, env),
  };
}

/** Returns a summary of the settings for the log. Omits endpoint addresses, which may be as secret as passwords. */
export const relaySummary = ({ RELAY_CORE_ADDRESS, RELAY_CONCURRENCY, RELAY_ENDPOINTS_FILE }: RelayConfig): object => ({
  tls: RELAY_CORE_ADDRESS.startsWith('https:'),
  concurrency: RELAY_CONCURRENCY,
  endpoints: [...RELAY_ENDPOINTS_FILE.endpoints.keys()],
});

function endpointsFile(path: string): EndpointsFile {
  const read = file(path);
  return { ...read, endpoints: parsedContents(read, parseEndpoints) };
}
