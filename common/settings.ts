import { readFileSync, statSync } from 'node:fs';
import { isIPv4, isIPv6 } from 'node:net';
import { MAX_DRAIN_MS } from './deadlines.ts';
import { Secret } from './secret.ts';
import { findTraits, listVariables, SETTING_NAMES, type SETTINGS, type SettingName } from './settings-table.ts';
import { isInjected, unknownSettings } from './unknown-settings.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The parsers of the settings that a process reads. Each throws an Error whose message completes the sentence "NAME …". */
export type Parsers = { readonly [Name in SettingName]?: (text: string) => unknown };

/** The parsed values of settings. A setting without a fallback may be undefined. */
export type SettingsOf<Read extends Parsers> = {
  readonly [Name in keyof Read & SettingName]:
    | ReturnType<NonNullable<Read[Name]>>
    | ((typeof SETTINGS)[Name] extends { readonly fallback: string } ? never : undefined);
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
 * Reads all settings of a process. A blank text counts as unset, unless the setting protects. An unknown variable that begins like a
 * setting is a fault.
 *
 * @param rules checks relations between settings, if each one is valid; returns one sentence per fault
 * @throws SettingsError with all faults
 */
export function readSettings<Read extends Parsers>(
  parsers: Read,
  env: Environment,
  rules: (values: SettingsOf<Read>) => readonly string[] = () => [],
): SettingsOf<Read> {
  const faults = unknownSettings(env);
  const read: Record<string, unknown> = {};
  for (const name of SETTING_NAMES) {
    try {
      if (parsers[name]) read[name] = readSetting(name, parsers[name], env);
    } catch (error) {
      faults.push(`${name} ${(error as Error).message}`);
    }
  }
  const values = read as SettingsOf<Read>;
  if (faults.length === 0) faults.push(...rules(values));
  if (faults.length > 0) throw new SettingsError(faults);
  return values;
}

/** Reads one setting. @throws Error whose message completes the sentence "NAME …" */
function readSetting<T>(name: SettingName, parse: (text: string) => T, env: Environment): T | undefined {
  const text = readSettingText(name, env) ?? findTraits(name).fallback;
  return text === undefined ? undefined : parse(text);
}

/** The settings that count as unset: blank ones, and addresses of Kubernetes Services. */
export interface IgnoredSettings {
  readonly ignored: readonly string[];
}

export function ignoredSettings(parsers: Parsers, env: Environment): IgnoredSettings {
  const variables = listVariables(SETTING_NAMES.filter((name) => parsers[name]));
  return { ignored: variables.filter((name) => env[name] !== undefined && valueIn(name, env) === undefined) };
}

/** Returns the value of a variable; undefined if it counts as unset. */
function valueIn(name: string, env: Environment): string | undefined {
  const value = env[name];
  return value === undefined || value.trim() === '' || isInjected(name, value) ? undefined : value;
}

function readSettingText(name: SettingName, env: Environment): string | undefined {
  const { fromFile, protects } = findTraits(name);
  const text = valueIn(name, env);
  const file = fromFile ? valueIn(`${name}_FILE`, env) : undefined;
  if (file === undefined) {
    const blank = listVariables([name]).filter((variable) => env[variable] !== undefined);
    if (text === undefined && protects && blank.length > 0) {
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
  // If an empty file counted as unset, the service would silently be unprotected.
  if (contents.trim() === '') throw new Error(`names an empty file: ${path}`);
  return contents;
}

/** Checks that a folder exists, so that a missing mount is noticed at the start. */
export function folder(path: string): string {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw new Error(`names no folder: ${path}`);
  return path;
}

export const text = (value: string): string => value;

/** The minimum length of a token: 128 bits in hexadecimal digits. */
const MIN_TOKEN_LENGTH = 32;

/** Parses a secret token that is sent in a header. */
export const bearerToken = (value: string): Secret => {
  if (!/^[!-~](?:[ -~]*[!-~])?$/.test(value)) throw new Error('must be visible ASCII characters, without a line end');
  if (value.length < MIN_TOKEN_LENGTH) {
    throw new Error(`must have at least ${MIN_TOKEN_LENGTH} characters: openssl rand -hex 32 makes one`);
  }
  return new Secret(value);
};

/** A file that a setting names, with its contents when the settings were read. The contents may be secret. */
export interface SettingFile {
  readonly path: string;
  readonly contents: Secret;
}

/** Reads the file at a path. */
export const file = (path: string): SettingFile => ({ path, contents: new Secret(readText(path)) });

/** Parses the contents of a file. @throws Error whose message completes the sentence "NAME …" */
export function parsedContents<Parsed>({ path, contents }: SettingFile, parse: (text: string) => Parsed): Parsed {
  try {
    return parse(contents.reveal());
  } catch (error) {
    throw new Error(`names a file that cannot be used: ${path} ${(error as Error).message}`);
  }
}

/** Returns the file that `NAME_FILE` names, for watching; undefined without one. */
export const findSettingFile = (name: string, env: Environment): SettingFile | undefined => {
  const path = env[`${name}_FILE`];
  return path?.trim() ? file(path) : undefined;
};

/** The token for a core, and the file that it comes from, if any. */
export interface TokenAccess {
  readonly CORE_TOKEN: Secret | undefined;
  readonly coreTokenFile: SettingFile | undefined;
}

/** Returns the token that a process starts with. Prefers the watched file's contents, which may be newer than the setting. */
export const readCoreToken = ({ CORE_TOKEN, coreTokenFile }: TokenAccess): Secret | undefined =>
  coreTokenFile ? bearerToken(coreTokenFile.contents.reveal().trim()) : CORE_TOKEN;

/** Returns a parser of a whole number from `min` to `max`, both included. */
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

/** Parses HOST:PORT, with an IPv6 address in brackets. */
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

/** Parses an http or https address without query, fragment or credentials. Returns it without a trailing slash. */
export const httpUrl = (value: string): string => {
  const url = URL.parse(value);
  if (!url || !/^https?:$/.test(url.protocol) || /[?#]/.test(url.href) || url.username || url.password) {
    throw new Error('must be an http:// or https:// address without query, fragment or credentials');
  }
  return url.href.replace(/\/+$/, '');
};

/** Returns whether a host name or address is reachable only from this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}

/** Returns the host of a URL by which this machine reaches a server that listens on an address or a name. */
export const localHost = (listensOn: string): string =>
  hostOfUrl({ '0.0.0.0': '127.0.0.1', '::': '::1' }[listensOn] ?? listensOn);

/**
 * Returns the `HOST:PORT` of a URL by which this machine reaches a process with these settings. It reads no other setting: a running
 * process keeps the previous contents of a file that is now invalid.
 */
export function ownAddress(part: 'CORE' | 'GATEWAY', env: Environment): string {
  const setting = (name: SettingName) => `${readSetting(name, text, env)}`;
  return `${localHost(setting(`${part}_HOST`))}:${setting(`${part}_PORT`)}`;
}

/** Returns an address or a name as the host of a URL. */
export const hostOfUrl = (host: string): string => (isIPv6(host) ? `[${host}]` : host);

/** The parsers of settings that several processes share. */
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
} satisfies Parsers;

export interface TracingConfig {
  readonly OTEL_EXPORTER_OTLP_ENDPOINT: string | undefined;
  readonly OTEL_TRACES_SAMPLER: string;
  readonly OTEL_TRACES_SAMPLER_ARG: number;
}
