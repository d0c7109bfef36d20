import { NOT_OF_DATA, PROBLEM_CODES, type ProblemCode } from '../gateway/problems.ts';
import CHECK_FINDINGS from './conformance/check-findings.json' with { type: 'json' };
import packageJson from './package.json' with { type: 'json' };

// Prints the constants by which a client understands responses, in one language: `npm run generate` writes them for each
// client, and `npm run check` fails when they are out of date.
const NOTE = 'Generated from sdk/generate-outcomes.ts and the version in sdk/package.json. Do not edit.';
const MAX_LINE = 120;

/** The constants by which a client understands responses of the service. */
const OUTCOMES: readonly { readonly name: string; readonly about: string; readonly values: unknown }[] = [
  {
    name: 'PROBLEM_CODES',
    about: 'The codes of the service, which are frozen: a problem with another code comes from an intermediary.',
    values: PROBLEM_CODES,
  },
  {
    name: 'SETTLING_CODES',
    about:
      'Codes that prove that no attempt has written: the service looks up the idempotency key before it sends them.',
    values: [
      'integration_source_invalid',
      'integration_idempotency_conflict',
      'integration_lead_already_open',
    ] satisfies readonly ProblemCode[],
  },
  {
    name: 'SETTLING_CODES_WITH_FIELDS',
    about:
      'Codes that prove the same when all faulty fields are in the data: the service would have refused earlier attempts, too.',
    values: ['integration_invalid_request'] satisfies readonly ProblemCode[],
  },
  {
    name: 'FIELDS_NOT_OF_DATA',
    about: 'Faulty fields outside the data: an intermediary may have spoiled only this attempt.',
    values: NOT_OF_DATA,
  },
  {
    name: 'FAILING_FROM_STATUS',
    about:
      'From this status on, a response is a failure: the request may have written, and the same request may succeed later.',
    values: 500,
  },
  {
    name: 'CODES_WRITING_NOTHING',
    about: 'Codes of failures that have written nothing.',
    values: ['integration_rate_unavailable'] satisfies readonly ProblemCode[],
  },
  {
    name: 'TEMPORARY_STATUSES',
    about: 'Statuses of refusals after which the same request may succeed later.',
    values: [408, 429],
  },
  {
    name: 'CONFIGURATION_REASONS',
    about:
      'Beginnings of outbox reasons that hold up all leads until somebody corrects the key, the studio or the address.',
    values: ['401 ', '402 ', '403 ', '404 ', '405 '],
  },
  {
    name: 'PAUSE_REASONS',
    about:
      'Beginnings of outbox reasons that pause all leads until the next attempt; an intermediary causes the last one.',
    values: ['429 ', '503 ', 'wait'],
  },
  {
    name: 'HTTP_WITHIN',
    about:
      'Matches http addresses within a machine or a private network. It suits all languages: no backslashes, and a dot for the bracket of IPv6.',
    values:
      '^http://(?:[^./:]+|.(?:::1|f[cd][0-9a-f:]+)]|(?:127|10|192[.]168|172[.](?:1[6-9]|2[0-9]|3[01]))[.][0-9.]+' +
      '|[^/:]+[.](?:home[.]arpa|internal|lan|local|localhost|svc|test))(?::[0-9]+)?(?:/|$)',
  },
  {
    name: 'SQL_WITH_DATA',
    about: 'Selects the rows of an outbox that a person may send again or discard: nobody is known to have their data.',
    values: "(state IN ('waiting', 'refused') OR capture IS NOT NULL)",
  },
  {
    name: 'SQL_RETRIED_ATTEMPTS',
    about:
      'The `attempts` of a row that a person sends again: 1 if an attempt had no answer, since it may have created the lead. Assigned before `state`, since MySQL assigns from left to right.',
    values: "CASE WHEN attempts > 1 OR (attempts = 1 AND state = 'waiting') THEN 1 ELSE 0 END",
  },
  {
    name: 'REASON_NOT_TAKEN',
    about: 'Why an outbox keeps the note of an already open lead.',
    values: 'already open: the contact has an open lead; whether the studio got this note depends on its settings',
  },
  {
    name: 'REASON_REPLAYED',
    about: 'Why an outbox keeps a lead whose first attempt was answered with an earlier one.',
    values: 'replayed: its key had been used before, so perhaps nobody got this message',
  },
  {
    name: 'REASON_UNREADABLE',
    about: 'Why an outbox refuses a row.',
    values: 'unreadable: the data in the table is not a JSON object',
  },
  {
    name: 'REASON_NOT_THERE',
    about: 'Why an API key may not find a lead of an outbox: the service gives all three cases the same response.',
    values: 'not there: erased, lost in a restored database, or of another studio',
  },
  {
    name: 'REASON_OTHER_DATA',
    about: 'Why a text of a lead may differ from the one that the outbox has kept.',
    values: 'other data: changed in the studio since, or the lead of an earlier visit',
  },
  {
    name: 'REASON_NOT_READ',
    about: 'Why an outbox does not know whether a lead is there.',
    values: 'not read: the service has failed to read it, which its operator has to look into',
  },
  {
    name: 'PAGES_MISSED',
    about:
      'After this many leads in a row that no page had could not be read one by one either, the pages are trusted.',
    values: 100,
  },
];

/** Quotes a text, with double quotes if it contains the other ones. */
const quoted = (text: string, quote: string) => (text.includes(quote) ? `"${text}"` : quote + text + quote);

/** Returns the findings as entries of a table: one line each, or four when it does not fit. */
function findings(indent: string, step: string, quote: string, entry: (name: string) => string, [begin, end]: string) {
  return Object.entries(CHECK_FINDINGS).map(([name, parts]) => {
    const texts = parts.map((part) => quoted(part, quote));
    const line = `${indent}${entry(name)} ${begin}${texts.join(', ')}${end},`;
    if (line.length <= MAX_LINE) return line;
    const long = texts.map((text) => `${indent}${step}${text},\n`).join('');
    return `${indent}${entry(name)} ${begin}\n${long}${indent}${end},`;
  });
}

const ABOUT_FINDINGS = 'The findings of a check: whether each is good, and its sentence for people.';

/** Writes a value in the syntax of a language: one item a line when it does not fit behind `before`. */
function literal(before: string, values: unknown, quote: string, [begin = '', end = ''] = '[]'): string {
  const text = (value: unknown) => (typeof value === 'string' ? quoted(value, quote) : String(value));
  if (!Array.isArray(values)) {
    const isBroken = before.startsWith('export') && before.length + text(values).length >= MAX_LINE;
    return isBroken ? `${before.trimEnd()}\n  ${text(values)}` : before + text(values);
  }
  const items = values.map(text);
  const isPython = begin === '(';
  const line = `${before}${begin}${items.join(', ')}${isPython && items.length === 1 ? ',' : ''}${end}`;
  const indent = /^ */.exec(before)?.[0] ?? '';
  const inner = `${indent}${isPython || indent ? '    ' : '  '}`;
  return line.length < MAX_LINE
    ? line
    : `${before}${begin}\n${items.map((item) => `${inner}${item},\n`).join('')}${indent}${end}`;
}

/** Returns the constants for a language. */
const constants = (language: string) => [
  ...OUTCOMES,
  {
    name: 'USER_AGENT',
    about: 'The name of the client in requests; many firewalls refuse requests without one.',
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
    `\n/** ${ABOUT_FINDINGS} */\nexport const CHECK_FINDINGS = {`,
    ...findings('  ', '  ', "'", (name) => `${name}:`, '[]'),
    '} as const;',
  ],
  php: () => [
    '<?php\n\ndeclare(strict_types=1);\n\nnamespace LeadIntake\\Internal;\n',
    `/**\n * The constants by which a client understands responses of the service, and its name in requests.\n * ${NOTE}\n *\n * @internal\n */\nfinal class Outcomes\n{`,
    constants('php')
      .map(({ name, about, values }) => `    /** ${about} */\n${literal(`    public const ${name} = `, values, "'")};`)
      .join('\n\n'),
    `\n    /** ${ABOUT_FINDINGS} */\n    public const CHECK_FINDINGS = [`,
    ...findings('        ', '    ', "'", (name) => `'${name}' =>`, '[]'),
    '    ];\n}',
  ],
  python: () => [
    `"""The constants by which a client understands responses of the service, and its name in requests.\n\n${NOTE}"""`,
    ...constants('python').map(
      ({ name, about, values }) => `\n#: ${about}\n${literal(`${name} = `, values, '"', '()')}`,
    ),
    `\n#: ${ABOUT_FINDINGS}\nCHECK_FINDINGS = {`,
    ...findings('    ', '    ', '"', (name) => `"${name}":`, '()'),
    '}',
  ],
};

process.stdout.write(`${LANGUAGES[process.argv[2] ?? '']?.().join('\n')}\n`);
