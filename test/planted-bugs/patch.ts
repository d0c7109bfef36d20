import { Lang, parse, type SgNode } from '@ast-grep/napi';

/** A fault in one place of the product: the code there, and its faulty replacement. */
export type Patch = CodePatch | TextPatch;

interface CodePatch {
  /** Relative to the root: `src/domain/lead.ts`. */
  readonly file: string;
  /**
   * An expression, a statement, or one member of an object, class or list. The file has it exactly once, in any layout.
   * `$NAME` matches any single node and `$$$NAME` any number of them, so that irrelevant parts can be omitted.
   */
  readonly find: string;
  /** Replaces it; `$NAME` stands for the matched part. */
  readonly put: string;
}

/** A fault in text inside a literal: SQL, Lua, a pattern. */
interface TextPatch {
  readonly file: string;
  /** The literals of the file have this exactly once, with any white space between its words. */
  readonly text: string;
  readonly put: string;
}

interface Place {
  readonly start: number;
  readonly end: number;
  readonly put: string;
}

/**
 * Returns the source with the fault.
 *
 * @throws Error unless the file has the original exactly once: the product has changed, and the planted bug must, too
 */
export function patched(source: string, patch: Patch): string {
  const root = parse(Lang.TypeScript, source).root();
  const [place, ...more] = 'text' in patch ? placesOfText(root, source, patch) : placesOfCode(root, source, patch);
  if (!place || more.length > 0) {
    throw new Error(`${patch.file} must contain this exactly once, and contains it ${place ? 'more often' : 'nowhere'}:
  ${'text' in patch ? patch.text : patch.find}
Quote the current code in the planted bug, or the code in which the same fault is possible now. Remove the bug if the fault is no longer possible.`);
  }
  return source.slice(0, place.start) + place.put + source.slice(place.end);
}

/** The kinds of syntax that a piece of code may be, each with a context in which it parses as that kind. */
const READINGS: readonly (readonly [kind: string | undefined, toContext: (code: string) => string])[] = [
  [undefined, (code) => code],
  ['object', (code) => `(${code})`],
  ['pair', (code) => `({ ${code} })`],
  ['spread_element', (code) => `[${code}]`],
  ['public_field_definition', (code) => `class Any { ${code} }`],
];

function placesOfCode(root: SgNode, source: string, { find, put }: CodePatch): Place[] {
  for (const [kind, toContext] of READINGS) {
    const context = toContext(find);
    if (!isWhole(context, kind, find)) continue;
    const found = root.findAll({ rule: { pattern: kind ? { context, selector: kind } : context } });
    if (found.length > 0) return found.map((node) => ({ ...findRange(node), put: withParts(put, node, source) }));
  }
  return [];
}

/** Whether the whole code parses as this kind. After an error, the parser returns the part that it recognizes. */
function isWhole(context: string, kind: string | undefined, code: string): boolean {
  const root = parse(Lang.TypeScript, context).root();
  const node = kind ? root.find({ rule: { kind } }) : root.child(0);
  return node?.text() === code && root.find({ rule: { kind: 'ERROR' } }) === null;
}

const withParts = (put: string, found: SgNode, source: string): string =>
  put.replace(/(\$\$\$|\$)([A-Z]+)/g, (_, mark: string, name: string) => {
    const parts = mark === '$' ? [found.getMatch(name)] : found.getMultipleMatches(name);
    const ranges = parts.filter((part) => part !== null).map(findRange);
    return source.slice(ranges.at(0)?.start ?? 0, ranges.at(-1)?.end ?? 0);
  });

function placesOfText(root: SgNode, source: string, { text, put }: TextPatch): Place[] {
  const texts = root.findAll({ rule: { any: ['string', 'template_string', 'regex'].map((kind) => ({ kind })) } });
  const ranges = texts.map(findRange);
  const words = text.trim().split(/\s+/).map(RegExp.escape).join('\\s+');
  return [...source.matchAll(new RegExp(words, 'g'))]
    .map(({ 0: { length }, index }) => ({ start: index, end: index + length, put }))
    .filter((place) => ranges.some(({ start, end }) => start < place.start && place.end < end));
}

function findRange(node: SgNode): { readonly start: number; readonly end: number } {
  const { start, end } = node.range();
  return { start: start.index, end: end.index };
}
