import { readFileSync, statSync } from 'node:fs';
import { isIPv4, isIPv6 } from 'node:net';
import { MAX_DRAIN_MS } from './deadlines.ts';
import { Secret } from './secret.ts';
import { listVariables, SETTINGS, type SettingTraits } from './settings-table.ts';
import { isInjected, unknownSettings } from './unknown-settings.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

interface Setting<T> extends SettingTraits {
  /** Parses the text; throws an Error whose message ends the sentence "NAME …". */
  readonly parse: (text: string) => T;
}

export type SettingsTable = Readonly<Record<string, Setting<unknown>>>;

/** The parsed values of a table; a setting without a fallback may be undefined. */
export type SettingsOf<Table extends SettingsTable> = {
  readonly [Name in keyof Table]:
    | ReturnType<Table[Name]['parse']>
    | (Table[Name] extends { readonly fallback: string } ? never : undefined);
};

type SettingName = keyof typeof SETTINGS;

/** Returns the settings of a process, by the parsers of those that it reads. */
export const settingsReadBy = <const Parsers extends { readonly [Name in SettingName]?: Setting<unknown>['parse'] }>(
  parsers: Parsers,
) =>
  Object.fromEntries(
    Object.entries(SETTINGS).flatMap(([name, traits]) => {
      const parse = parsers[name as SettingName];
      return parse ? [[name, { ...traits, parse }]] : [];
    }),
  ) as unknown as {
    readonly [Name in keyof Parsers & SettingName]: (typeof SETTINGS)[Name] & {
      readonly parse: NonNullable<Parsers[Name]>;
    };
  };

export class SettingsError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(
      `the configuration has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`,
    );
    this.name = 'SettingsError';
    this.faults = faults;
  }
}

/**
 * Reads the settings of a table, which are all settings of a process. A blank text counts as unset, unless the setting
 * protects; a variable that begins as a setting does, and is none, is a fault.
 *
 * @param rules checks relations between settings, if each one is valid; returns one sentence per fault
 * @throws SettingsError with all faults
 */
export function readSettings<const Table extends SettingsTable>(
  table: Table,
  env: Environment,
  rules: (values: SettingsOf<Table>) => readonly string[] = () => [],
): SettingsOf<Table> {
  const faults = unknownSettings(env);
  const values: Record<string, unknown> = {};
  for (const [name, setting] of Object.entries(table)) {
    try {
      values[name] = readSetting(name, setting, env);
    } catch (error) {
      faults.push(`${name} ${(error as Error).message}`);
    }
  }
  if (faults.length === 0) faults.push(...rules(values as SettingsOf<Table>));
  if (faults.length > 0) throw new SettingsError(faults);
  return values as SettingsOf<Table>;
}

/** Reads one setting. @throws Error whose message ends the sentence "NAME …" */
function readSetting<T>(name: string, setting: Setting<T>, env: Environment): T | undefined {
  const text = readSettingText(name, setting, env) ?? setting.fallback;
  return text === undefined ? undefined : setting.parse(text);
}

/** The settings of a process that count as unset: blank ones, and addresses of Kubernetes' Services. */
export interface IgnoredSettings {
  readonly ignored: readonly string[];
}

export const ignoredSettings = (table: SettingsTable, env: Environment): IgnoredSettings => ({
  ignored: listVariables(table).filter((name) => env[name] !== undefined && valueIn(name, env) === undefined),
});

/** The value of a variable; undefined: it counts as unset. */
function valueIn(name: string, env: Environment): string | undefined {
  const value = env[name];
  return value === undefined || value.trim() === '' || isInjected(name, value) ? undefined : value;
}

function readSettingText(name: string, setting: Setting<unknown>, env: Environment): string | undefined {
  const text = valueIn(name, env);
  const file = setting.fromFile ? valueIn(`${name}_FILE`, env) : undefined;
  if (file === undefined) {
    const blank = listVariables({ [name]: setting }).filter((variable) => env[variable] !== undefined);
    if (text === undefined && setting.protects && blank.length > 0) {
      const where = blank.filter((variable) => variable !== name).map((variable) => ` in ${variable}`);
      throw new Error(`has no value${where.join('')}, and protects nothing: give it one, or remove it`);
    }
    return text;
  }
  if (text !== undefined) throw new Error(`is set, and ${name}_FILE too: set one of them`);
  return readText(file).trim();
}

function readText(path: string): string {
  let contents: string;
  try {
    contents = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`names a file that cannot be read: ${path} (${(error as NodeJS.ErrnoException).code})`);
  }
  // Treated as unset, an empty file would leave unprotected what the setting is to protect.
  if (contents.trim() === '') throw new Error(`names an empty file: ${path}`);
  return contents;
}

/** A folder that is there, so that a volume that is not mounted is noticed at the start. */
export function folder(path: string): string {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw new Error(`names no folder: ${path}`);
  return path;
}

export const text = (value: string): string => value;

/** The minimum length of a token: as hexadecimal digits, 128 bits. */
const MIN_TOKEN_LENGTH = 32;

/** A secret token that is sent in a header. */
export const bearerToken = (value: string): Secret => {
  if (!/^[!-~](?:[ -~]*[!-~])?$/.test(value)) throw new Error('must be visible ASCII characters, without a line end');
  if (value.length < MIN_TOKEN_LENGTH) {
    throw new Error(`must have at least ${MIN_TOKEN_LENGTH} characters: openssl rand -hex 32 makes one`);
  }
  return new Secret(value);
};

/** A file that a setting names, and its contents when the settings were read, which may be secret. */
export interface SettingFile {
  readonly path: string;
  readonly contents: Secret;
}

/** The path of a file, which is read. */
export const file = (path: string): SettingFile => ({ path, contents: new Secret(readText(path)) });

/** Parses the contents of a file. @throws Error whose message ends the sentence "NAME …" */
export function parsedContents<Parsed>({ path, contents }: SettingFile, parse: (text: string) => Parsed): Parsed {
  try {
    return parse(contents.reveal());
  } catch (error) {
    throw new Error(`names a file that cannot be used: ${path} ${(error as Error).message}`);
  }
}

/** The file that `NAME_FILE` names, to be watched; undefined: there is none. */
export const findSettingFile = (name: string, env: Environment): SettingFile | undefined => {
  const path = env[`${name}_FILE`];
  return path?.trim() ? file(path) : undefined;
};

/** The token of a core, and the file that it comes from, if there is one. */
export interface TokenAccess {
  readonly CORE_TOKEN: Secret | undefined;
  readonly coreTokenFile: SettingFile | undefined;
}

/** The token that a process starts with: from its file, which may have changed since the setting was read. */
export const readCoreToken = ({ CORE_TOKEN, coreTokenFile }: TokenAccess): Secret | undefined =>
  coreTokenFile ? bearerToken(coreTokenFile.contents.reveal().trim()) : CORE_TOKEN;

/** A whole number from `min` to `max`, both included. */
export const integer =
  (min: number, max: number) =>
  (value: string): number => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max)
      throw new Error(`must be a whole number from ${min} to ${max}`);
    return number;
  };

export const ratio = (value: string): number => {
  if (!/^(?:0?\.\d+|0|1(?:\.0+)?)$/.test(value)) throw new Error('must be a number from 0 to 1');
  return Number(value);
};

/** A TCP port; 0 lets the system choose. */
export const port = integer(0, 65_535);

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** HOST:PORT, with an IPv6 address in brackets. */
export const address = (value: string): Address => {
  const [, host, number = ''] = /^(\[[\da-f:.]+\]|[^:[\]\s]+):(\d+)$/i.exec(value) ?? [];
  if (host === undefined) throw new Error('must be HOST:PORT');
  return { host: host.replace(/^\[|\]$/g, ''), port: port(number) };
};

export const oneOf =
  <const Words extends readonly string[]>(...words: Words) =>
  (value: string): Words[number] => {
    if (!words.includes(value)) throw new Error(`must be one of ${words.join(', ')}`);
    return value;
  };

export const yesOrNo = (value: string): boolean => oneOf('yes', 'no')(value) === 'yes';

/** An http or https address without query, fragment or credentials; returned without a trailing slash. */
export const httpUrl = (value: string): string => {
  const url = URL.parse(value);
  if (!url || !/^https?:$/.test(url.protocol) || /[?#]/.test(url.href) || url.username || url.password) {
    throw new Error('must be an http:// or https:// address without query, fragment or credentials');
  }
  return url.href.replace(/\/+$/, '');
};

/** Whether a host name or address is only reachable from this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}

/** Returns the host of a URL by which this machine reaches a server that listens on an address or a name. */
export const localHost = (listensOn: string): string =>
  hostOfUrl({ '0.0.0.0': '127.0.0.1', '::': '::1' }[listensOn] ?? listensOn);

/**
 * Returns `HOST:PORT`, as in a URL, by which this machine reaches a process with these settings. No other setting matters: a running process
 * keeps the previous contents of a file that is invalid now.
 */
export function ownAddress(part: 'CORE' | 'GATEWAY', env: Environment): string {
  const setting = (name: SettingName) => `${readSetting(name, { ...SETTINGS[name], parse: text }, env)}`;
  return `${localHost(setting(`${part}_HOST`))}:${setting(`${part}_PORT`)}`;
}

/** Returns an address or a name as the host of a URL. */
export const hostOfUrl = (host: string): string => (isIPv6(host) ? `[${host}]` : host);

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

export interface TracingConfig {
  readonly OTEL_EXPORTER_OTLP_ENDPOINT: string | undefined;
  readonly OTEL_TRACES_SAMPLER: ReturnType<typeof commonSettings.OTEL_TRACES_SAMPLER>;
  readonly OTEL_TRACES_SAMPLER_ARG: number;
}
