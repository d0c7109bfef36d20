import { readFileSync } from 'node:fs';
import { STATUS_CODES } from 'node:http';
import { basename, join } from 'node:path';
import GithubSlugger from 'github-slugger';
import { Marked, Renderer } from 'marked';
import { PROBLEM_CODES, PROBLEM_MEDIA_TYPE, PROBLEMS, type ProblemCode, problemBody } from '../problems.ts';
import { exampleOf, REQUEST_ID } from './examples.ts';
import { openApiInfo } from './openapi.ts';

/** The path and the name of every page, in the order of the menu. */
const MENU = [
  ['/docs', 'Reference'],
  ['/docs/quick-start', 'Quick start'],
  ['/docs/clients', 'Clients'],
  ['/docs/retries', 'Retries'],
  ['/docs/outbox', 'Outbox'],
  ['/docs/limits', 'Limits'],
  ['/docs/keys', 'Keys'],
  ['/docs/problems', 'Problems'],
] as const;

/** Values on the pages that are known only once the service starts; `limit` is that of a key per window. */
type PageValues = Readonly<{ publicUrl: string; limit: number; windowSeconds: number }>;

/** A page of the documentation, in HTML, in Markdown, or as plain text. */
export interface DocsPage {
  readonly path: string;
  readonly mediaType: string;
  readonly text: string;
}

/** Returns the pages, with the `{{name}}` of each value replaced by it. */
export function pagesOf(values: PageValues): DocsPage[] {
  return PAGES.map((each) => {
    const escaped = isHtml(each) ? escapeHtml : String;
    const fill = (placeholder: string, name: string) =>
      name in values ? escaped(String(values[name as keyof PageValues])) : placeholder;
    return { ...each, text: each.text.replace(/\{\{(\w+)\}\}/g, fill) };
  });
}

/** Whether a page is in HTML. */
export const isHtml = ({ mediaType }: DocsPage): boolean => mediaType.startsWith('text/html');

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const page = (path: string, type: 'html' | 'markdown' | 'plain', text: string): DocsPage => ({
  path,
  mediaType: `text/${type}; charset=utf-8`,
  text,
});

/**
 * Returns a complete page in HTML. Links are relative: the docs may be served under a prefix.
 *
 * @param title plain text
 * @param body HTML
 * @param markdown the path of the same page in Markdown
 */
function htmlPage(path: string, title: string, body: string, markdown?: string): DocsPage {
  const link = relativeFrom(path);
  const alternate = markdown ? `<link rel="alternate" type="text/markdown" href="${link(markdown)}">\n` : '';
  const menu = MENU.map(
    ([to, name]) => `<a href="${link(to)}"${to === path ? ' aria-current="page"' : ''}>${name}</a>`,
  );
  const text = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · Lead Intake API</title>
${alternate}<link rel="icon" href="${link('/docs/assets/icon.svg')}">
<link rel="stylesheet" href="${link('/docs/assets/style.css')}">
</head>
<body>
<header>
<nav class="site">
<strong>Lead Intake API</strong>
${menu.join('\n')}
</nav>
</header>
${body}
</body>
</html>
`;
  return page(path, 'html', text);
}

/** Returns a function that makes paths relative to that of a page. */
function relativeFrom(path: string): (to: string) => string {
  const up = '../'.repeat(path.split('/').length - 2);
  return (to) => up + to.slice(1);
}

/** Renders the OpenAPI document and can send its requests. */
const REFERENCE = `\
<noscript><p class="page">The reference needs JavaScript; the other pages and the
<a href="v1/openapi.json">OpenAPI document</a> do not.</p></noscript>
<main id="reference"></main>
<script src="docs/assets/scalar.js"></script>
<script type="module" src="docs/assets/reference.js"></script>`;

function problemList(): string {
  return PROBLEM_CODES.map((code) => {
    const { status, title } = PROBLEMS[code];
    return `- ${status} [\`${code}\`](/docs/problems/${code})<br>${title}`;
  }).join('\n');
}

function problemPage(code: ProblemCode): string {
  const problem = exampleOf(code);
  const body = JSON.parse(problemBody(problem, REQUEST_ID, '{{publicUrl}}'));
  const headers = Object.entries({ 'content-type': PROBLEM_MEDIA_TYPE, ...problem.headers });
  return `\
# ${PROBLEMS[code].title}

\`${code}\`, status ${PROBLEMS[code].status}

${read('problems', code)}
## Example

\`\`\`http
HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}
${headers.map(([name, value]) => `${name}: ${value}`).join('\n')}

${JSON.stringify(body, null, 2)}
\`\`\`
`;
}

/** Returns the index for programs (llmstxt.org): the summary, and the pages that the quick start lists. */
function indexForPrograms(): string {
  const [, next = ''] = /^## Next\n([\s\S]+)/m.exec(read('pages', 'quick-start')) ?? [];
  const { title, summary } = openApiInfo;
  return withAbsoluteLinks(`# ${title}

> ${summary}

Each page is also available as HTML, without \`.md\`.

## Pages

- [Quick start](/docs/quick-start): get a key, create a first lead, and read leads.
${next.trim()}
`);
}

/** Makes links absolute, because readers of Markdown have it without its address. */
const withAbsoluteLinks = (markdown: string): string =>
  markdown
    .replaceAll(/\]\((\/docs\/[\w/-]+)\)/g, ']({{publicUrl}}$1.md)')
    .replaceAll(/\]\((\/[\w./-]*)\)/g, ']({{publicUrl}}$1)');

function writtenPage(path: string, markdown: string): [DocsPage, DocsPage] {
  const link = relativeFrom(path);
  const slugger = new GithubSlugger();
  const marked = new Marked({
    renderer: {
      heading({ depth, tokens }) {
        const text = this.parser.parseInline(tokens);
        return `<h${depth} id="${slugger.slug(text.replaceAll(/<[^>]*>/g, ''))}">${text}</h${depth}>\n`;
      },
      table(token) {
        return `<div class="table">\n${Renderer.prototype.table.call(this, token)}</div>\n`;
      },
    },
    walkTokens(token) {
      if (token.type === 'link' && token.href.startsWith('/')) token.href = link(token.href);
    },
  });
  const [, title = ''] = /^# (.+)$/m.exec(markdown) ?? [];
  const body = `<main class="page">\n${marked.parse(markdown)}</main>`;
  const address = `${path}.md`;
  return [htmlPage(path, title, body, address), page(address, 'markdown', withAbsoluteLinks(markdown))];
}

function read(folder: string, name: string): string {
  return readFileSync(join(import.meta.dirname, folder, `${name}.md`), 'utf8');
}

/** Every page, where values of a running service are `{{name}}`. `llms.txt` is at the root, where programs look for it. */
const PAGES: readonly DocsPage[] = [
  htmlPage('/docs', 'Reference', REFERENCE),
  page('/llms.txt', 'plain', indexForPrograms()),
  ...MENU.slice(1).flatMap(([path]) =>
    writtenPage(path, read('pages', basename(path)).replace('{{problems}}', problemList)),
  ),
  ...PROBLEM_CODES.flatMap((code) => writtenPage(`/docs/problems/${code}`, problemPage(code))),
];
