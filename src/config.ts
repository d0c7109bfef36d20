import { Secret } from '../common/secret.ts';
import {
  address,
  commonSettings,
  type Environment,
  file,
  findSettingFile,
  type IgnoredSettings,
  ignoredSettings,
  integer,
  isLoopback,
  type Parsers,
  parsedContents,
  readSettings,
  type SettingFile,
  type SettingsOf,
  yesOrNo,
} from '../common/settings.ts';
import type { TlsFiles } from '../common/tls-credentials.ts';
import { type CallerEntries, parseCallers } from './callers-file.ts';
import { databaseUrlFault } from './store/open-store.ts';

export const coreSettings = {
  ...commonSettings,
  CORE_CALLERS_FILE: callersFile,
  CORE_TLS_CERT_FILE: file,
  CORE_TLS_KEY_FILE: file,
  CORE_TLS_CLIENT_CA_FILE: file,
  CORE_CONNECTION_MAX_AGE_MS: integer(1000, 86_400_000),
  CORE_REFLECTION: yesOrNo,
  DATABASE_URL: databaseUrl,
  CORE_METRICS_ADDRESS: address,
} satisfies Parsers;

export type CoreConfig = SettingsOf<typeof coreSettings> &
  IgnoredSettings & { readonly coreTokenFile: SettingFile | undefined };

/** @throws SettingsError */
export const readCoreConfig = (env: Environment): CoreConfig => ({
  ...readSettings(coreSettings, env, combinationFaults),
  ...ignoredSettings(coreSettings, env),
  coreTokenFile: findSettingFile('CORE_TOKEN', env),
});

/** Returns the core's TLS certificate, its key and the authorities of client certificates. */
export const coreTls = (config: CoreConfig): TlsFiles => ({
  cert: config.CORE_TLS_CERT_FILE,
  key: config.CORE_TLS_KEY_FILE,
  ca: config.CORE_TLS_CLIENT_CA_FILE,
});

/** Returns a summary of the settings for the log: whether connections use TLS, and who may call. */
export function coreSummary(config: CoreConfig): object {
  const { CORE_TOKEN, CORE_CALLERS_FILE, CORE_TLS_CERT_FILE, CORE_TLS_CLIENT_CA_FILE } = config;
  const named = CORE_CALLERS_FILE && `${Object.keys(CORE_CALLERS_FILE.entries).length} callers of CORE_CALLERS_FILE`;
  const letsIn = [CORE_TOKEN && 'CORE_TOKEN', named].filter(Boolean);
  return {
    tls: CORE_TLS_CERT_FILE !== undefined,
    mutualTls: CORE_TLS_CLIENT_CA_FILE !== undefined,
    letsIn: letsIn.length > 0 ? letsIn : ['every program that can connect'],
  };
}

/** Reads the one core setting that the command line needs. @throws SettingsError */
export const readDatabaseUrl = (env: Environment): Secret =>
  readSettings({ DATABASE_URL: databaseUrl }, env).DATABASE_URL;

function combinationFaults(config: SettingsOf<typeof coreSettings>): string[] {
  const faults: string[] = [];
  const { CORE_HOST, CORE_TOKEN, CORE_CALLERS_FILE, CORE_TLS_CERT_FILE, CORE_TLS_KEY_FILE, CORE_TLS_CLIENT_CA_FILE } =
    config;
  if (!CORE_TLS_CERT_FILE !== !CORE_TLS_KEY_FILE) {
    faults.push('CORE_TLS_CERT_FILE and CORE_TLS_KEY_FILE must be set together');
  }
  if (CORE_TLS_CLIENT_CA_FILE && !CORE_TLS_CERT_FILE) {
    faults.push('CORE_TLS_CLIENT_CA_FILE needs CORE_TLS_CERT_FILE and CORE_TLS_KEY_FILE');
  }
  if (!isLoopback(CORE_HOST) && !CORE_TOKEN && !CORE_CALLERS_FILE && !CORE_TLS_CLIENT_CA_FILE) {
    faults.push(
      `CORE_HOST is ${CORE_HOST}, which others can reach: set CORE_CALLERS_FILE, CORE_TOKEN or CORE_TLS_CLIENT_CA_FILE`,
    );
  }
  return faults;
}

function callersFile(path: string): SettingFile & { readonly entries: CallerEntries } {
  const read = file(path);
  return { ...read, entries: parsedContents(read, parseCallers) };
}

/** The URL may contain a password, so the value is a secret. */
function databaseUrl(text: string): Secret {
  const fault = databaseUrlFault(text);
  if (fault) throw new Error(fault);
  return new Secret(text);
}
