import { SETTINGS, variablesOf } from './settings-table.ts';

const VARIABLES = variablesOf(SETTINGS);

/** The names by which Kubernetes gives the addresses of Services to each container, such as CORE_SERVICE_HOST. */
const KUBERNETES_NAME = /_SERVICE_(?:HOST|PORT(?:_\w+)?)$|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?$/;

/**
 * Whether Kubernetes gives a container this variable for a Service. A Service named `core` has the setting CORE_PORT, as
 * an address.
 */
export function isInjected(name: string, value: string | undefined): boolean {
  return KUBERNETES_NAME.test(name) || (name.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(value ?? ''));
}

/** Settings of earlier releases, and those that replaced them. */
const REPLACED: Readonly<Record<string, string>> = { CORE_PROCESSES: 'REUSE_PORT', GATEWAY_PROCESSES: 'REUSE_PORT' };

/**
 * Returns a fault for each variable that is no setting, and looks like one that is: a setting that is misspelt would
 * silently not protect.
 *
 * @param settings the names of all variables that are read
 */
export function misspeltSettings(
  settings: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): string[] {
  return Object.keys(env).flatMap((name) => {
    if (settings.includes(name) || isInjected(name, env[name])) return [];
    const replacement = REPLACED[name];
    if (replacement !== undefined && settings.includes(replacement)) {
      return [`${name} is no longer a setting: remove it, and start each process by itself, with ${replacement}=yes`];
    }
    const meant = LIKENESSES.flatMap((isLike) => settings.filter((setting) => isLike(name.toUpperCase(), setting)))[0];
    return meant === undefined ? [] : [`${name} is not a setting: rename it to ${meant}, or remove it`];
  });
}

/** What makes a name look like a setting, the surest sign first. */
const LIKENESSES: readonly ((name: string, setting: string) => boolean)[] = [
  (name, setting) => isNear(name, setting),
  (name, setting) => isNear(name, `${setting}_FILE`) || isNear(name, setting.replace(/_FILE$/, '')),
  (name, setting) => withoutAWord(setting).includes(name),
];

/** The setting without one of its words, of which the first and one more remain. */
function withoutAWord(setting: string): string[] {
  const words = setting.split('_');
  return words.length < 3 ? [] : words.slice(1).map((_, index) => words.toSpliced(index + 1, 1).join('_'));
}

/** Whether two names differ in at most two letters: missing, added or other ones; swapped ones count once. */
function isNear(a: string, b: string, changes = 2): boolean {
  let same = 0;
  while (same < a.length && a[same] === b[same]) same += 1;
  const [x, y] = [a.slice(same), b.slice(same)];
  if (x === '' && y === '') return true;
  const isNearAfter = (left: number, right: number) => isNear(x.slice(left), y.slice(right), changes - 1);
  const isSwapped = x.length > 1 && x[0] === y[1] && x[1] === y[0];
  return (
    changes > 0 && (isNearAfter(1, 0) || isNearAfter(0, 1) || isNearAfter(1, 1) || (isSwapped && isNearAfter(2, 2)))
  );
}

/** The first words of settings that other programs have, too. */
const SHARED_WORDS = new Set(['DATABASE', 'LOG', 'OTEL', 'PUBLIC']);

/** What providers of Redis set beside REDIS_URL. */
const PROVIDED = new Set(['REDIS_HOST', 'REDIS_PORT', 'REDIS_TLS_URL']);

const firstWord = (name: string): string => name.split('_', 1)[0] as string;
const sortedWords = (name: string): string => name.split('_').toSorted().join('_');

const OWN = VARIABLES.filter((name) => !SHARED_WORDS.has(firstWord(name)));
const OWN_WORDS = new Set(OWN.map(firstWord));

/** The settings without their first words, of which two or more remain. */
const REMAINDERS = new Set(OWN.map((name) => name.replace(/^[^_]+_/, '')).filter((rest) => rest.includes('_')));

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
