/** The most letters that a misspelt name misses, has in addition or has instead of others; swapped ones count once. */
const MAX_LETTERS = 2;

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
  isNear,
  (name, setting) => isNear(name, `${setting}_FILE`) || isNear(name, setting.replace(/_FILE$/, '')),
  (name, setting) => withoutAWord(setting).includes(name),
];

/** The setting without one of its words, of which the first and one more remain. */
function withoutAWord(setting: string): string[] {
  const words = setting.split('_');
  return words.length < 3 ? [] : words.slice(1).map((_, index) => words.toSpliced(index + 1, 1).join('_'));
}

/** Whether two names differ in at most MAX_LETTERS. */
function isNear(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > MAX_LETTERS) return false;
  // The changes that make the beginning of `a` that of `b`, one row for each letter of `a`.
  const rows = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= a.length; row += 1) {
    const [former = [], last = []] = [rows[row - 2], rows[row - 1]];
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const isSame = a[row - 1] === b[column - 1];
      const isSwapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      current.push(
        Math.min(
          (last[column] as number) + 1,
          (current[column - 1] as number) + 1,
          (last[column - 1] as number) + (isSame ? 0 : 1),
          isSwapped ? (former[column - 2] as number) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    rows.push(current);
  }
  return (rows[a.length]?.[b.length] as number) <= MAX_LETTERS;
}
