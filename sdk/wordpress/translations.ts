import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = join(import.meta.dirname, 'lead-intake');

/** A text of the plugin that WordPress translates. */
export interface Text {
  readonly id: string;
  /** The plural form; undefined when there is only one form. */
  readonly plural: string | undefined;
  /** The note for translators. */
  readonly comment: string | undefined;
  /** The file that has it first, relative to the plugin's folder. */
  readonly file: string;
}

/** The translations of texts: one form each, or as many plural forms as the language has. */
export type Translations = ReadonlyMap<
  string,
  { readonly plural: string | undefined; readonly forms: readonly string[] }
>;

const STRING = String.raw`'((?:[^'\\]|\\.)*)'`;
const CALL = new RegExp(
  String.raw`(?:/\* (translators: [^*]+) \*/[^;'*]{0,80}?)?\b(?:__|_e|esc_(?:html|attr)_[_e])\(\s*${STRING},\s*'lead-intake'\s*,?\s*\)` +
    String.raw`|(?:/\* (translators: [^*]+) \*/[^;'*]{0,80}?)?\b_n\(\s*${STRING},\s*${STRING},`,
  'g',
);

/** Returns the texts in the plugin's code, each once, in the order of the files. */
export function textsOfPlugin(): readonly Text[] {
  const texts = new Map<string, Text>();
  for (const file of globSync('**/*.php', { cwd: FOLDER }).toSorted()) {
    const code = readFileSync(join(FOLDER, file), 'utf8');
    const [, description] = /^ \* Description: (.+)$/m.exec(code) ?? [];
    if (description !== undefined)
      texts.set(description, { id: description, plural: undefined, comment: undefined, file });
    const calls = code.match(/\b(?:__|_e|_n|esc_(?:html|attr)_[_e])\(/g) ?? [];
    const literal = [...code.matchAll(CALL)];
    if (literal.length !== calls.length)
      throw new Error(`${file}: each call for a translation needs a literal text and the plugin's domain`);
    for (const [, commentOfOne, one, commentOfSeveral, singular, plural] of literal) {
      const id = unquoted(one ?? singular ?? '');
      const text = {
        id,
        plural: plural === undefined ? undefined : unquoted(plural),
        comment: commentOfOne ?? commentOfSeveral,
        file,
      };
      if (!texts.has(id)) texts.set(id, text);
    }
  }
  return [...texts.values()];
}

/** Returns the template for translators, a file in the format of gettext. It has no date, so that equal code makes equal templates. */
export function template(): string {
  const header = [
    'Project-Id-Version: Lead Intake',
    'Content-Type: text/plain; charset=UTF-8',
    'X-Domain: lead-intake',
  ];
  const entries = textsOfPlugin().map(({ id, plural, comment, file }) => [
    ...(comment === undefined ? [] : [`#. ${comment}`]),
    `#: ${file}`,
    `msgid ${JSON.stringify(id)}`,
    ...(plural === undefined
      ? ['msgstr ""']
      : [`msgid_plural ${JSON.stringify(plural)}`, 'msgstr[0] ""', 'msgstr[1] ""']),
  ]);
  const all = [['msgid ""', 'msgstr ""', ...header.map((line) => JSON.stringify(`${line}\n`))], ...entries];
  return `${all.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

/** Reads a file in the format of gettext. The header is the translation of the empty text. */
export function translationsIn(po: string): Translations {
  const found = new Map<string, { plural: string | undefined; forms: string[] }>();
  for (const entry of po.split(/\n{2,}/)) {
    const parts = [...entry.matchAll(/^(msgid|msgid_plural|msgstr(?:\[\d\])?) ((?:"(?:[^"\\]|\\.)*"\n?)+)/gm)];
    const toText = (keyword: string) =>
      parts.filter(([, name = '']) => name === keyword).map(([, , text = '']) => joined(text))[0];
    const forms = parts.filter(([, name = '']) => name.startsWith('msgstr')).map(([, , text = '']) => joined(text));
    const id = toText('msgid');
    if (id !== undefined) found.set(id, { plural: toText('msgid_plural'), forms });
  }
  return found;
}

/** Returns a file of translations in the binary form that WordPress reads (GNU gettext's MO, little-endian, without a hash table). */
export function toMo(po: string): Uint8Array {
  const pairs = [...translationsIn(po)]
    .map(([id, { plural, forms }]) => [[id, plural].filter((text) => text !== undefined), forms] as const)
    .map((texts) => texts.map((forms) => Buffer.from(forms.join('\0'))) as [Buffer, Buffer])
    .toSorted(([a], [b]) => a.compare(b));
  const HEADER_BYTES = 28;
  const tables = Buffer.alloc(HEADER_BYTES + pairs.length * 16);
  const words = [0x950412de, 0, pairs.length, HEADER_BYTES, HEADER_BYTES + pairs.length * 8, 0, tables.length];
  for (const [index, word] of words.entries()) tables.writeUInt32LE(word, index * 4);
  const texts: Buffer[] = [];
  let end = tables.length;
  for (const column of [0, 1] as const) {
    for (const [row, pair] of pairs.entries()) {
      const at = HEADER_BYTES + (column * pairs.length + row) * 8;
      tables.writeUInt32LE(pair[column].length, at);
      tables.writeUInt32LE(end, at + 4);
      texts.push(pair[column], Buffer.alloc(1));
      end += pair[column].length + 1;
    }
  }
  return Buffer.concat([tables, ...texts]);
}

const unquoted = (text: string): string => text.replaceAll(/\\(['\\])/g, '$1');

const joined = (quoted: string): string =>
  (quoted.match(/"(?:[^"\\]|\\.)*"/g) ?? []).map((line) => JSON.parse(line)).join('');
