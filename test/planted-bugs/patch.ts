import { Lang, parse, type SgNode } from '@ast-grep/napi';

/** A fault in one place of the product: what stands there, and what stands there instead. */
export type Patch = CodePatch | TextPatch;

interface CodePatch {
  /** From the root: `src/domain/lead.ts`. */
  readonly file: string;
  /**
   * An expression, a statement, or one member of an object, a class or a list that is in the file exactly once, however it is
   * laid out. `$NAME` stands for whatever is in its place and `$$$NAME` for any number of them, so that it need not say what it
   * does not care for.
   */
  readonly find: string;
  /** May have, by their names, the parts that were found. */
  readonly put: string;
}

/** For what is written in a text, which is no code of this language: SQL, Lua, a pattern. */
interface TextPatch {
  readonly file: string;
  /** Is in the texts of the file exactly once, whatever white space is between its words. */
  readonly text: string;
  readonly put: string;
}

interface Place {
  readonly start: number;
  readonly end: number;
  readonly put: string;
}

/**
 * The source with the fault in it.
 *
 * @throws Error when the place is not there, or not the only one: then the variant has to follow the product
 */
export function patched(source: string, patch: Patch): string {
  const root = parse(Lang.TypeScript, source).root();
  const [place, ...more] = 'text' in patch ? placesOfText(root, source, patch) : placesOfCode(root, source, patch);
  if (!place || more.length > 0) {
    throw new Error(`${patch.file} is to have this exactly once, and has it ${place ? 'more often' : 'nowhere'}:
  ${'text' in patch ? patch.text : patch.find}
Tell the planted bug what stands there now, or where else the same mistake can be made. What cannot go wrong any more needs none.`);
  }
  return source.slice(0, place.start) + place.put + source.slice(place.end);
}

/** What a piece of code may be, each as what it stands in. */
const READINGS: readonly (readonly [kind: string | undefined, context: (code: string) => string])[] = [
  [undefined, (code) => code],
  ['object', (code) => `(${code})`],
  ['pair', (code) => `({ ${code} })`],
  ['spread_element', (code) => `[${code}]`],
  ['public_field_definition', (code) => `class Any { ${code} }`],
];

function placesOfCode(root: SgNode, source: string, { find, put }: CodePatch): Place[] {
  for (const [kind, contextOf] of READINGS) {
    const context = contextOf(find);
    if (!isWhole(context, kind, find)) continue;
    const found = root.findAll({ rule: { pattern: kind ? { context, selector: kind } : context } });
    if (found.length > 0) return found.map((node) => ({ ...rangeOf(node), put: withParts(put, node, source) }));
  }
  return [];
}

/** Whether code can be read so, and all of it. The parser reads on where something is wrong, and picks what it knows. */
function isWhole(context: string, kind: string | undefined, code: string): boolean {
  const root = parse(Lang.TypeScript, context).root();
  const node = kind ? root.find({ rule: { kind } }) : root.child(0);
  return node?.text() === code && root.find({ rule: { kind: 'ERROR' } }) === null;
}

const withParts = (put: string, found: SgNode, source: string): string =>
  put.replace(/(\$\$\$|\$)([A-Z]+)/g, (_, mark: string, name: string) => {
    const parts = mark === '$' ? [found.getMatch(name)] : found.getMultipleMatches(name);
    const ranges = parts.filter((part) => part !== null).map(rangeOf);
    return source.slice(ranges.at(0)?.start ?? 0, ranges.at(-1)?.end ?? 0);
  });

function placesOfText(root: SgNode, source: string, { text, put }: TextPatch): Place[] {
  const texts = root.findAll({ rule: { any: ['string', 'template_string', 'regex'].map((kind) => ({ kind })) } });
  const ranges = texts.map(rangeOf);
  const words = text.trim().split(/\s+/).map(RegExp.escape).join('\\s+');
  return [...source.matchAll(new RegExp(words, 'g'))]
    .map(({ 0: { length }, index }) => ({ start: index, end: index + length, put }))
    .filter((place) => ranges.some(({ start, end }) => start < place.start && place.end < end));
}

function rangeOf(node: SgNode): { readonly start: number; readonly end: number } {
  const { start, end } = node.range();
  return { start: start.index, end: end.index };
}
