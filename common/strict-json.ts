/** The form of names in files of settings. Addresses, secrets and tokens that stand in their place do not match it. */
const NAME = /^(?:[a-z0-9][a-z0-9._-]{0,62}|[A-Za-z]{1,20})$/;

/** Returns a JSON pointer without its first slash. Replaces each part that does not look like a name with `what`. */
export const describeLocation = (pointer: string, what: string): string =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => (NAME.test(part) ? part : what))
    .join('/');

/**
 * Parses a file of settings.
 *
 * @throws Error whose message completes a sentence "The file …", and quotes nothing of the file but a repeated name
 */
export function parseStrictJson(text: string): unknown {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // The parser's message quotes the file, which may contain secrets.
    throw new Error('is not JSON');
  }
  const repeated = repeatedName(text);
  if (repeated !== undefined)
    throw new Error(`has ${NAME.test(repeated) ? repeated : 'a name'} twice; only the last would count`);
  return parsed;
}

/** Returns a name that an object of the JSON has twice, if any. A parser silently takes the last one. */
function repeatedName(json: string): string | undefined {
  const open: Set<string>[] = [];
  for (const [token, name] of json.matchAll(/[{}[\]]|("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"/g)) {
    if (token === '{' || token === '[') open.push(new Set());
    if (token === '}' || token === ']') open.pop();
    if (name === undefined) continue;
    const [names, key] = [open.at(-1), JSON.parse(name) as string];
    if (names?.has(key)) return key;
    names?.add(key);
  }
  return undefined;
}
