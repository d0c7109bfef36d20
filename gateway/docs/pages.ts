import { readFileSync } from 'node:fs';
import { STATUS_CODES } from 'node:http';
import { basename, join } from 'node:path';
import { PROBLEM_CODES, PROBLEM_MEDIA_TYPE, PROBLEMS, type ProblemCode, problemBody } from '../problems.ts';
import { codeSamples } from './code-samples.ts';
import { exampleOf, REQUEST_ID } from './examples.ts';
import { openApiInfo } from './openapi.ts';
import { manualList, manuals, PACKAGES_PATH, type Packages, packageList, packageValues } from './packages.ts';
import { referencePage } from './reference-page.ts';
import { render, type Section } from './rendering.ts';

/** The path and the name of every page, in the order of the menu. */
const MENU = [
  ['/docs/quick-start', 'Quick start'],
  ['/docs/clients', 'Clients'],
  [PACKAGES_PATH, 'Packages'],
  ['/docs/retries', 'Retries'],
  ['/docs/outbox', 'Outbox'],
  ['/docs/limits', 'Limits'],
  ['/docs/keys', 'Keys'],
  ['/docs/problems', 'Problems'],
  ['/docs/reference', 'Reference'],
  ['/docs', 'Try it out'],
] as const;

/** Values on the pages that are known only once the service starts; `limit` is that of a key per window. */
type PageValues = Readonly<{ publicUrl: string; limit: number; windowSeconds: number }>;

/** A page of the documentation, in HTML, in Markdown, or as plain text; or what the search looks through. */
export interface DocsPage {
  readonly path: string;
  readonly mediaType: string;
  readonly text: string;
}

/** Returns the pages, with the `{{name}}` of each value replaced by it. */
export function pagesOf(values: PageValues, packages: Packages): DocsPage[] {
  const samples = codeSamples(values.publicUrl, 'createLead').map(({ lang, source }) => [`${lang}Sample`, source]);
  const all: Readonly<Record<string, string | number>> = {
    ...values,
    ...packageValues(packages, values.publicUrl),
    ...Object.fromEntries(samples),
  };
  return allPages(packages).map((each) => {
    const escaped = isHtml(each) ? escapeHtml : each.path.endsWith('.json') ? escapeJson : String;
    const fill = (placeholder: string, name: string) => (name in all ? escaped(String(all[name])) : placeholder);
    // A notice that is empty is no paragraph.
    const text = all.packagesNotice
      ? each.text
      : each.text.replaceAll(/<p>\{\{packagesNotice\}\}<\/p>\n|\{\{packagesNotice\}\}\n*/g, '');
    return { ...each, text: text.replace(/\{\{(\w+)\}\}/g, fill) };
  });
}

/** Whether a page is in HTML. */
export const isHtml = ({ mediaType }: DocsPage): boolean => mediaType.startsWith('text/html');

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const escapeJson = (text: string): string => JSON.stringify(text).slice(1, -1);

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
<script type="module" src="${link('/docs/assets/site.js')}"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="site">
<strong>Lead Intake API</strong>
<nav class="menu" aria-label="Pages">
${menu.join('\n')}
</nav>
<form role="search" hidden>
<input type="search" aria-label="Search the docs" placeholder="Search" autocomplete="off">
<ul class="results" aria-label="Results" aria-live="polite"></ul>
</form>
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
const TRY_IT_OUT = `\
<noscript><p class="page">This page needs JavaScript; <a href="docs/reference">the reference</a> and all other pages
do not.</p></noscript>
<main id="content"></main>
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

All of them in one file: [llms-full.txt](/llms-full.txt).

## Pages

- [Quick start](/docs/quick-start): get a key, create a first lead, and read leads.
${next.trim()}
`);
}

/** Makes the links of a page absolute, because readers of Markdown have it without its address. */
const withAbsoluteLinks = (markdown: string, path = ''): string =>
  markdown
    .replaceAll('](#', `](${path}#`)
    .replaceAll(/\]\((\/docs\/[\w/-]+)(#[\w-]+)?\)/g, (_, page, anchor = '') => `]({{publicUrl}}${page}.md${anchor})`)
    .replaceAll(/\]\((\/[\w./-]*)\)/g, ']({{publicUrl}}$1)');

/** A page in Markdown, with placeholders. */
interface WrittenPage {
  readonly path: string;
  readonly markdown: string;
}

/** A section of a page, as the search has it. */
type IndexEntry = Section & { readonly path: string; readonly page: string };

function formsOf({ path, markdown }: WrittenPage): { forms: DocsPage[]; index: IndexEntry[] } {
  const { html, sections } = render(markdown, relativeFrom(path));
  const title = sections[0]?.title ?? '';
  const address = `${path}.md`;
  const body = `<main class="page" id="content">\n${html}</main>`;
  return {
    forms: [htmlPage(path, title, body, address), page(address, 'markdown', withAbsoluteLinks(markdown, path))],
    index: sections.map((section) => ({ path, page: title, ...section })),
  };
}

function read(folder: string, name: string): string {
  return readFileSync(join(import.meta.dirname, folder, `${name}.md`), 'utf8');
}

/** Every page, where values of a running service are `{{name}}`. `llms.txt` is at the root, where programs look for it. */
function allPages(packages: Packages): DocsPage[] {
  const lists: Readonly<Record<string, () => string>> = {
    problems: problemList,
    packageList: () => packageList(packages),
    manualList: () => manualList(packages),
  };
  const written: WrittenPage[] = [
    ...MENU.slice(0, -2).map(([path]) => ({
      path,
      markdown: read('pages', basename(path)).replaceAll(
        /\{\{(problems|packageList|manualList)\}\}/g,
        (_, name) => lists[name]?.() ?? '',
      ),
    })),
    ...manuals(packages),
    { path: '/docs/reference', markdown: referencePage('{{publicUrl}}') },
    ...PROBLEM_CODES.map((code) => ({ path: `/docs/problems/${code}`, markdown: problemPage(code) })),
  ];
  const rendered = written.map(formsOf);
  const whole = written.map(({ markdown, path }) => withAbsoluteLinks(markdown, path)).join('\n');
  return [
    htmlPage('/docs', 'Try it out', TRY_IT_OUT),
    page('/llms.txt', 'plain', indexForPrograms()),
    page('/llms-full.txt', 'plain', whole),
    {
      path: '/docs/search.json',
      mediaType: 'application/json',
      text: JSON.stringify(rendered.flatMap(({ index }) => index)),
    },
    ...rendered.flatMap(({ forms }) => forms),
  ];
}
