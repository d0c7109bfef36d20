import { CAPTURE_RULES, isContactType } from '../common/rules/field-rules.ts';

// Prints the rules of the texts of a creation as constants of one language, with the patterns in its own syntax: `npm run
// generate` writes them for each client, and `npm run check` fails when they are out of date.
const NOTE = 'Generated from common/rules/field-rules.ts. Do not edit.';
const ABOUT =
  'The patterns that the texts of a creation must match, with the message and the code for a text that does not.';
const BLANK = 'Matches blank text: the white space of ECMAScript, so that all languages agree.';
const ABOUT_OPTIONAL = 'The texts of a creation that may be null, left out or blank.';
const MAX_LINE = 120;

/** A name has a visible character: the service accepts one without, but the clients refuse it before the visitor is thanked. */
const VISIBLE = [
  /^[\s\S]*[^\s\p{Cc}\p{Default_Ignorable_Code_Point}]/u,
  'must have a visible character',
  'not_visible',
] as const;
const RULES = { ...CAPTURE_RULES, displayName: [...CAPTURE_RULES.displayName, VISIBLE] };

const OPTIONAL_TEXTS = Object.keys(RULES).filter((name) => name !== 'displayName' && !isContactType(name));
const optionalTexts = (quote: string) => OPTIONAL_TEXTS.map((name) => quote + name + quote).join(', ');

/** All fault codes: those of the rules, and those that only types need. */
const CODES = new Set([
  ...Object.values(RULES).flatMap((rules) => rules.map(([, , code]) => code)),
  'not_text',
  'no_contact_type',
  'unknown_property',
]);

/** Writes a code point, given in hexadecimal, in the syntax of a language. */
type Escape = (hex: string) => string;

/** Returns a character class of ECMAScript as ranges, because classes of the same name differ between languages. */
function formatRanges(characters: RegExp, written: Escape): string {
  const codes = Array.from({ length: 0x11_0000 }, (_, code) => code);
  const found = new Set(codes.filter((code) => characters.test(String.fromCodePoint(code))));
  const text = (code: number) => written(code.toString(16).padStart(4, '0'));
  return [...found]
    .filter((code) => !found.has(code - 1))
    .map((first) => {
      let last = first;
      while (found.has(last + 1)) last += 1;
      return first === last ? text(first) : `${text(first)}-${text(last)}`;
    })
    .join('');
}

/** Translates a pattern, without its flags. Digits keep their class: languages differ only in those of the latest releases of Unicode. */
function translated({ source, flags }: RegExp, written: Escape): string {
  const text = source.replaceAll(/\[(\^?)(\\s(?:\\p\{\w+\})*)\]/g, (_, not, characters) => {
    return `[${not}${formatRanges(new RegExp(`[${characters}]`, 'u'), written)}]`;
  });
  const isAlike = source.startsWith('^') && !/[^u]/.test(flags) && !/\\[bsw]/i.test(text.replaceAll('[\\s\\S]', ''));
  if (!isAlike) throw new Error(`/${source}/${flags} means something else in PHP or Python: see the other patterns`);
  return text;
}

const phpPattern = (pattern: RegExp): string => `'/${translated(pattern, (hex) => `\\x{${hex}}`)}/Du'`;

function pythonPattern(pattern: RegExp): string {
  const text = translated(pattern, (hex) => (hex.length > 4 ? `\\U${hex.padStart(8, '0')}` : `\\u${hex}`))
    .replaceAll('\\P{Cs}', '[^\\ud800-\\udfff]')
    .replaceAll('\\P{Nd}', '\\D')
    .replaceAll('\\p{Nd}', '\\d')
    .replaceAll('$', '\\Z');
  return `r"${text}"`;
}

/**
 * Returns the entries of the table: a line for each rule, or four when it does not fit.
 *
 * @param field how an entry begins
 * @param indent of an entry, and of each level within it
 * @param literal the pattern as source
 */
function entries(
  field: (name: string) => string,
  [begin = '', end = '']: string,
  quote: string,
  [indent, step]: readonly [string, string],
  literal: (pattern: RegExp) => string,
): readonly string[] {
  const formatLine = ([pattern, ...texts]: readonly [RegExp, string, string]) => {
    const parts = [literal(pattern), ...texts.map((text) => quote + text + quote)];
    const line = `${indent}${step}${begin}${parts.join(', ')}${end},`;
    const long = parts.map((part) => `${indent}${step}${step}${part},\n`).join('');
    return line.length <= MAX_LINE ? line : `${indent}${step}${begin}\n${long}${indent}${step}${end},`;
  };
  return Object.entries(RULES).flatMap(([name, rules]) => [
    `${indent}${field(name)} ${begin}`,
    ...rules.map(formatLine),
    `${indent}${end},`,
  ]);
}

const LANGUAGES: Readonly<Record<string, () => readonly string[]>> = {
  typescript: () => [
    `// ${NOTE}\n`,
    '/** The code of a fault in a lead, from which a page in another language finds its own words. */',
    `export type FaultCode =${[...CODES].map((code) => `\n  | '${code}'`).join('')};\n`,
    '/** A pattern, with the message and the code for a text that does not match it. */',
    'export type Rule = readonly [pattern: RegExp, fault: string, code: FaultCode];\n',
    `/** ${ABOUT} */\nexport const CAPTURE_RULES: Readonly<Record<string, readonly Rule[]>> = {`,
    ...entries((name) => `${name}:`, '[]', "'", ['  ', '  '], String),
    `};\n\n/** ${ABOUT_OPTIONAL} */\nexport const OPTIONAL_TEXTS = [${optionalTexts("'")}] as const;`,
  ],
  php: () => [
    '<?php\n\ndeclare(strict_types=1);\n\nnamespace LeadIntake\\Internal;\n',
    `/**\n * ${ABOUT}\n * ${NOTE}\n *\n * @internal\n */\nfinal class CaptureRules\n{\n    public const RULES = [`,
    ...entries((name) => `'${name}' =>`, '[]', "'", ['        ', '    '], phpPattern),
    `    ];\n\n    /** ${ABOUT_OPTIONAL} */\n    public const OPTIONAL_TEXTS = [${optionalTexts("'")}];\n`,
    `    /** ${BLANK} */\n    public const BLANK = ${phpPattern(/^[\s]*$/)};\n}`,
  ],
  python: () => [
    `"""The rules of the texts of a creation. ${NOTE}"""\n\n#: ${ABOUT}\nCAPTURE_RULES = {`,
    ...entries((name) => `"${name}":`, '()', '"', ['    ', '    '], pythonPattern),
    `}\n\n#: ${ABOUT_OPTIONAL}\nOPTIONAL_TEXTS = (${optionalTexts('"')})\n`,
    `#: ${BLANK}\nBLANK = ${pythonPattern(/^[\s]*$/)}`,
  ],
};

process.stdout.write(`${LANGUAGES[process.argv[2] ?? '']?.().join('\n')}\n`);
