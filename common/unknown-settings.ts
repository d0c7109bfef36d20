import { listVariables, SETTING_NAMES } from './settings-table.ts';

const VARIABLES = new Set(listVariables(SETTING_NAMES));

const firstWord = (name: string): string => `${name.split('_', 1)[0]}`.toUpperCase();

/** First words that only our settings use. Other programs read variables that begin with the excluded ones. */
const OWN_WORDS = new Set([...VARIABLES].map(firstWord)).difference(new Set(['DATABASE', 'LOG', 'OTEL', 'PUBLIC']));

/** Redis providers set these beside REDIS_URL. Our tests get the last one. */
const PROVIDED = /^REDIS_(?:HOST|PORT|DB|USER|USERNAME|PASSWORD|(?:TLS|PUBLIC|PRIVATE|TEMPORARY|TEST)_URL)$/;

/** Names under which Kubernetes gives every container the addresses of Services, such as CORE_SERVICE_HOST. */
const KUBERNETES_NAME = /_SERVICE_(?:HOST|PORT(?:_\w+)?)$|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?$/;

/** Returns whether Kubernetes sets this variable for a Service. A Service named `core` sets CORE_PORT to an address. */
export const isInjected = (name: string, value: string | undefined): boolean =>
  KUBERNETES_NAME.test(name) || (name.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(value ?? ''));

/** Returns a fault for each variable that begins like a setting but is not one. A misspelt setting would silently fail to protect. */
export const unknownSettings = (env: Readonly<Record<string, string | undefined>>): string[] =>
  Object.keys(env)
    .filter((name) => OWN_WORDS.has(firstWord(name)) && !VARIABLES.has(name))
    .filter((name) => !PROVIDED.test(name) && !isInjected(name, env[name]))
    .map((name) => `${name} is not a setting: docs/reference/settings.md has all names; correct it, or remove it`);
