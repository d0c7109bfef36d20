import { listVariables, SETTINGS } from './settings-table.ts';

const VARIABLES = new Set(listVariables(SETTINGS));

const firstWord = (name: string): string => `${name.split('_', 1)[0]}`.toUpperCase();

/** The first words that only our settings have. Other programs read variables that begin with the others. */
const OWN_WORDS = new Set([...VARIABLES].map(firstWord)).difference(new Set(['DATABASE', 'LOG', 'OTEL', 'PUBLIC']));

/** Providers of Redis set these beside REDIS_URL; our tests are given the last. */
const PROVIDED = /^REDIS_(?:HOST|PORT|DB|USER|USERNAME|PASSWORD|(?:TLS|PUBLIC|PRIVATE|TEMPORARY|TEST)_URL)$/;

/** The names by which Kubernetes gives the addresses of Services to each container, such as CORE_SERVICE_HOST. */
const KUBERNETES_NAME = /_SERVICE_(?:HOST|PORT(?:_\w+)?)$|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?$/;

/**
 * Whether Kubernetes gives a container this variable for a Service. A Service named `core` has the setting CORE_PORT, as
 * an address.
 */
export const isInjected = (name: string, value: string | undefined): boolean =>
  KUBERNETES_NAME.test(name) || (name.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(value ?? ''));

/**
 * Returns a fault for each variable that begins as a setting does, and is none of any process: a setting that is misspelt
 * would silently not protect.
 */
export const unknownSettings = (env: Readonly<Record<string, string | undefined>>): string[] =>
  Object.keys(env)
    .filter((name) => OWN_WORDS.has(firstWord(name)) && !VARIABLES.has(name))
    .filter((name) => !PROVIDED.test(name) && !isInjected(name, env[name]))
    .map((name) => `${name} is not a setting: docs/reference/settings.md has all names; correct it, or remove it`);
