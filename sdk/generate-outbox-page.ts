import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

// Prints the page of an outbox, with the headers of all its responses, as constants of one language: `npm run generate` writes
// them for each client, and `npm run check` fails when they are out of date.
const NOTE = 'Generated from sdk/outbox/page.html by sdk/generate-outbox-page.ts. Do not edit.';
const PAGE = readFileSync(join(import.meta.dirname, 'outbox/page.html'), 'utf8');
if (/"""|^HTML/m.test(PAGE)) throw new Error('The page may have no """, and no line may begin with HTML.');

const computeHash = (tag: string): string => {
  const [, text = ''] = new RegExp(`<${tag}[^>]*>([^]*?)</${tag}>`).exec(PAGE) ?? [];
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
};

const HEADERS = Object.entries({
  Allow: 'GET, HEAD, POST',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': `default-src 'none'; script-src ${computeHash('script')}; style-src ${computeHash('style')}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex',
});

const ABOUT_PAGE = 'The page of an outbox.';
const ABOUT_HEADERS = 'The headers of all its responses.';
const entries = (line: (name: string, value: string) => string) =>
  HEADERS.map(([name, value]) => line(name, value)).join('\n');

const LANGUAGES: Readonly<Record<string, () => string>> = {
  typescript: () => `// ${NOTE}

/** ${ABOUT_HEADERS} */
export const HEADERS = {
${entries((name, value) => `  ${name.includes('-') ? `'${name}'` : name}:${value.length > 60 ? '\n   ' : ''} ${value.includes("'") ? `"${value}"` : `'${value}'`},`)}
} as const;

/** ${ABOUT_PAGE} */
export const PAGE = \`${PAGE.replaceAll(/[\\`]|\$\{/g, '\\$&')}\`;`,
  php: () => `<?php

declare(strict_types=1);

namespace LeadIntake\\Outbox\\Internal;

/**
 * ${ABOUT_PAGE}
 * ${NOTE}
 *
 * @internal
 */
final class PageHtml
{
    /** ${ABOUT_HEADERS} */
    public const HEADERS = [
${entries((name, value) => `        '${name}' => "${value}",`)}
    ];

    public const PAGE = <<<'HTML'
${PAGE}HTML;
}`,
  python: () => `"""${ABOUT_PAGE}

${NOTE}"""

#: ${ABOUT_HEADERS}
HEADERS = {
${entries((name, value) => `    "${name}": "${value}",`)}
}

PAGE = r"""${PAGE}"""`,
};

process.stdout.write(`${LANGUAGES[process.argv[2] ?? '']?.()}\n`);
