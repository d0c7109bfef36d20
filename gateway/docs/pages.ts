import { readFileSync } from 'node:fs';
import { STATUS_CODES } from 'node:http';
import { basename, join } from 'node:path';
import { PROBLEM_CODES, PROBLEM_MEDIA_TYPE, PROBLEMS, type ProblemCode, problemBody } from '../problems.ts';
import { codeSamples } from './code-samples.ts';
import { REQUEST_ID, toExample } from './examples.ts';
import { openApiInfo } from './openapi.ts';
import { manuals, PACKAGES_PATH, type Packages, packageList, packageValues, withoutAbsentManuals } from './packages.ts';
import { referencePage } from './reference-page.ts';
import { render, type Section } from './rendering.ts';

/** The path and the name of every page, in the order of the menu. */
const MENU = [
  ['/docs', 'Start'],
  ['/docs/quick-start', 'Quick start'],
  ['/docs/clients', 'Clients'],
  ['/docs/outbox', 'Outbox'],
  ['/docs/retries', 'Retries'],
  ['/docs/limits', 'Limits'],
  ['/docs/keys', 'Keys'],
  ['/docs/problems', 'Problems'],
  [PACKAGES_PATH, 'Packages'],
  ['/docs/reference', 'Reference'],
  ['/docs/try-it-out', 'Try it out'],
] as const;

/** The path of the page that can send requests. */
export const TRY_IT_OUT_PATH = '/docs/try-it-out';

/** Values on the pages that are known only once the service starts; `limit` is that of a key per window. */
type PageValues = Readonly<{ publicUrl: string; limit: number; windowSeconds: number }>;

/** A page of the documentation, in HTML, in Markdown, or as plain text; or what the search looks through. */
export interface DocsPage {
  readonly path: string;
  readonly mediaType: string;
  readonly text: string;
}

/** Returns the pages, with the `{{name}}` of each value replaced by it. */
export function renderPages(values: PageValues, packages: Packages): DocsPage[] {
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
 * @param others the pages of the second menu
 * @param markdown the path of the same page in Markdown
 */
function htmlPage(path: string, title: string, body: string, others: Menu, markdown?: string): DocsPage {
  const link = relativeFrom(path);
  const alternate = markdown ? `<link rel="alternate" type="text/markdown" href="${link(markdown)}">\n` : '';
  const menu = (label: string, entries: Menu) => `<nav class="menu" aria-label="${label}">
${entries.map(([to, name]) => `<a href="${link(to)}"${to === path ? ' aria-current="page"' : ''}>${name}</a>`).join('\n')}
</nav>`;
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
${menu('Pages', MENU)}
${others.length > 0 ? menu('Manuals', others) : ''}
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
<div class="page"><p><strong>What you send from here is real:</strong> a POST creates a lead in the studio of your key. Paste a key for trying only, best of a
studio for tests, and revoke it afterwards; a website's key never belongs into a page.</p>
<noscript><p>This page needs JavaScript; <a href="../docs/reference">the reference</a> and all other pages do not.</p></noscript></div>
<main id="content"></main>
<script src="../docs/assets/scalar.js"></script>
<script type="module" src="../docs/assets/reference.js"></script>`;

function problemList(): string {
  return PROBLEM_CODES.map((code) => {
    const { status, title } = PROBLEMS[code];
    return `- ${status} [\`${code}\`](/docs/problems/${code})<br>${title}`;
  }).join('\n');
}

function problemPage(code: ProblemCode): string {
  const problem = toExample(code);
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

/** Returns the index for programs (llmstxt.org): the summary, and the pages that the first one lists. */
function indexForPrograms(packages: Packages): string {
  const [, lists = ''] = /^(## [\s\S]+)/m.exec(withoutAbsentManuals(read('pages', 'docs'), packages)) ?? [];
  const { title, summary } = openApiInfo;
  return withAbsoluteLinks(`# ${title}

> ${summary}

Each page is also available as HTML, without \`.md\`.

All of them in one file: [llms-full.txt](/llms-full.txt).

${lists}`);
}

/** Makes the links of a page absolute, because readers of Markdown have it without its address. */
const withAbsoluteLinks = (markdown: string, path = ''): string =>
  markdown
    .replaceAll('](#', `](${path}#`)
    .replaceAll(
      /\]\((\/docs(?!\/try-it-out)(?:\/[\w/-]+)?)(#[\w-]+)?\)/g,
      (_, page, anchor = '') => `]({{publicUrl}}${page}.md${anchor})`,
    )
    .replaceAll(/\]\((\/[\w./-]*)\)/g, ']({{publicUrl}}$1)');

/** The paths and the names of pages. */
type Menu = readonly (readonly [path: string, name: string])[];

/** A page in Markdown, with placeholders. */
interface WrittenPage {
  readonly path: string;
  readonly markdown: string;
}

/** A section of a page, as the search has it. */
type IndexEntry = Section & { readonly path: string; readonly page: string };

function renderForms({ path, markdown }: WrittenPage, others: Menu): { forms: DocsPage[]; index: IndexEntry[] } {
  const { html, sections } = render(markdown, relativeFrom(path));
  const title = sections[0]?.title ?? '';
  const address = `${path}.md`;
  const body = `<main class="page" id="content">\n${html}</main>`;
  return {
    forms: [htmlPage(path, title, body, others, address), page(address, 'markdown', withAbsoluteLinks(markdown, path))],
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
  };
  const own = manuals(packages);
  const written: WrittenPage[] = [
    ...MENU.slice(0, -2).map(([path]) => ({
      path,
      markdown: withoutAbsentManuals(read('pages', basename(path)), packages).replaceAll(
        /\{\{(problems|packageList)\}\}/g,
        (_, name) => lists[name]?.() ?? '',
      ),
    })),
    ...own,
    { path: '/docs/reference', markdown: referencePage('{{publicUrl}}') },
    ...PROBLEM_CODES.map((code) => ({ path: `/docs/problems/${code}`, markdown: problemPage(code) })),
  ];
  const others = own.map(({ path, name }) => [path, name] as const);
  const rendered = written.map((each) => renderForms(each, others));
  const whole = written.map(({ markdown, path }) => withAbsoluteLinks(markdown, path)).join('\n');
  return [
    htmlPage(TRY_IT_OUT_PATH, 'Try it out', TRY_IT_OUT, others),
    page('/llms.txt', 'plain', indexForPrograms(packages)),
    page('/llms-full.txt', 'plain', whole),
    {
      path: '/docs/search.json',
      mediaType: 'application/json',
      text: JSON.stringify(rendered.flatMap(({ index }) => index)),
    },
    ...rendered.flatMap(({ forms }) => forms),
  ];
}
