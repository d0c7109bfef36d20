import outcomes from './outcomes.json' with { type: 'json' };
import packageJson from './package.json' with { type: 'json' };

// Prints what the responses of the service mean as constants of one language: `npm run generate` writes them for each
// client, and `npm run check` fails when they are out of date.
const NOTE = 'Generated from sdk/outcomes.json and the version in sdk/package.json. Do not edit.';
const MAX_LINE = 120;

/** The text in quotes, other ones than it has itself. */
const quoted = (text: string, quote: string) => (text.includes(quote) ? `"${text}"` : quote + text + quote);

/** The value in the syntax of a language; one item a line when it is too long for the line that begins with `before`. */
function literal(before: string, values: unknown, quote: string, [begin = '', end = ''] = '[]'): string {
  const text = (value: unknown) => (typeof value === 'string' ? quoted(value, quote) : String(value));
  if (!Array.isArray(values)) return before + text(values);
  const items = values.map(text);
  const isPython = begin === '(';
  const line = `${before}${begin}${items.join(', ')}${isPython && items.length === 1 ? ',' : ''}${end}`;
  const indent = /^ */.exec(before)?.[0] ?? '';
  const inner = `${indent}${isPython || indent ? '    ' : '  '}`;
  return line.length < MAX_LINE
    ? line
    : `${before}${begin}\n${items.map((item) => `${inner}${item},\n`).join('')}${indent}${end}`;
}

/** The constants of a language. */
const constants = (language: string) => [
  ...outcomes,
  {
    name: 'USER_AGENT',
    about: 'How requests name the client; many firewalls refuse requests without a name.',
    values: `lead-intake-${language}/${packageJson.version}`,
  },
];

const LANGUAGES: Readonly<Record<string, () => readonly string[]>> = {
  typescript: () => [
    `// ${NOTE}`,
    ...constants('node').map(({ name, about, values }) => {
      const type = Array.isArray(values) ? `: readonly ${typeof values[0]}[]` : '';
      return `\n/** ${about} */\n${literal(`export const ${name}${type} = `, values, "'")};`;
    }),
  ],
  php: () => [
    '<?php\n\ndeclare(strict_types=1);\n\nnamespace LeadIntake\\Internal;\n',
    `/**\n * What the responses of the service mean, and how requests name the client.\n * ${NOTE}\n *\n * @internal\n */\nfinal class Outcomes\n{`,
    constants('php')
      .map(({ name, about, values }) => `    /** ${about} */\n${literal(`    public const ${name} = `, values, "'")};`)
      .join('\n\n'),
    '}',
  ],
  python: () => [
    `"""What the responses of the service mean, and how requests name the client.\n\n${NOTE}"""`,
    ...constants('python').map(
      ({ name, about, values }) => `\n#: ${about}\n${literal(`${name} = `, values, '"', '()')}`,
    ),
  ],
};

process.stdout.write(`${LANGUAGES[process.argv[2] ?? '']?.().join('\n')}\n`);
