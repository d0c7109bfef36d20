import { isInjected } from './misspelt-settings.ts';

/** All variables that the core and the gateway read. Each is given those of the other where they share an environment. */
export const VARIABLES: readonly string[] = [
  'CORE_CALLERS_FILE',
  'CORE_CA_FILE',
  'CORE_CLIENT_CERT_FILE',
  'CORE_CLIENT_KEY_FILE',
  'CORE_CONNECTION_MAX_AGE_MS',
  'CORE_HOST',
  'CORE_METRICS_ADDRESS',
  'CORE_PORT',
  'CORE_REFLECTION',
  'CORE_TLS_CERT_FILE',
  'CORE_TLS_CLIENT_CA_FILE',
  'CORE_TLS_KEY_FILE',
  'CORE_TOKEN',
  'CORE_TOKEN_FILE',
  'CORE_URL',
  'DATABASE_URL',
  'DATABASE_URL_FILE',
  'GATEWAY_HOST',
  'GATEWAY_METRICS_ADDRESS',
  'GATEWAY_PORT',
  'LOG_LEVEL',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_TRACES_SAMPLER',
  'OTEL_TRACES_SAMPLER_ARG',
  'PUBLIC_URL',
  'QUOTA_LIMIT',
  'QUOTA_STUDIO_LIMIT',
  'QUOTA_WINDOW_SECONDS',
  'REDIS_CLUSTER',
  'REDIS_KEY_PREFIX',
  'REDIS_URL',
  'REDIS_URL_FILE',
  'REUSE_PORT',
  'SHUTDOWN_DRAIN_MS',
];

/** The first words of settings that other programs have, too. */
const SHARED_WORDS = new Set(['DATABASE', 'LOG', 'OTEL', 'PUBLIC']);

/** What providers of Redis set beside REDIS_URL. */
const PROVIDED = new Set(['REDIS_HOST', 'REDIS_PORT', 'REDIS_TLS_URL']);

const firstWord = (name: string): string => name.split('_', 1)[0] as string;
const sortedWords = (name: string): string => name.split('_').toSorted().join('_');

const OWN = VARIABLES.filter((name) => !SHARED_WORDS.has(firstWord(name)));
const OWN_WORDS = new Set(OWN.map(firstWord));

/** The settings without their first words, of which two or more remain. */
const REMAINDERS = new Set(
  OWN.map((name) => name.split('_').slice(1)).flatMap((words) => (words.length < 2 ? [] : words.join('_'))),
);

/**
 * Returns the variables that are no settings, and that somebody may have taken for one: those that begin as ours do, or
 * have the words of one. What is too much like one is a fault before (misspeltSettings).
 */
export const unknownVariables = (env: Readonly<Record<string, string | undefined>>): string[] =>
  Object.keys(env).filter((variable) => {
    const name = variable.toUpperCase();
    if (VARIABLES.includes(variable) || PROVIDED.has(variable) || isInjected(name, env[variable])) return false;
    return (
      OWN_WORDS.has(firstWord(name)) || REMAINDERS.has(name) || VARIABLES.some((setting) => hasWords(name, setting))
    );
  });

/** Whether a name has the words of a setting: all of it among others, or the same in another order. */
const hasWords = (name: string, setting: string): boolean =>
  `_${name}_`.includes(`_${setting}_`) || sortedWords(name) === sortedWords(setting);
