import { escapeHtml } from './escape-html.ts';

/** The length of the longest query that is searched for; characters. */
export const MAX_QUERY = 200;

/** The path and the name of every page, in the order of the menu. */
export const MENU = [
  ['/docs', 'Reference'],
  ['/docs/quick-start', 'Quick start'],
  ['/docs/clients', 'Clients'],
  ['/docs/retries', 'Retries'],
  ['/docs/outbox', 'Outbox'],
  ['/docs/limits', 'Limits'],
  ['/docs/keys', 'Keys'],
  ['/docs/problems', 'Problems'],
] as const;

interface PageContent extends Readonly<Record<'path' | 'title' | 'body', string>> {
  readonly markdown?: string;
}

/**
 * Returns a complete HTML page. Links are relative: the docs may be served under a prefix.
 *
 * @param title plain text
 * @param body HTML
 * @param markdown the path of the same page in Markdown
 */
export function layout({ path, title, body, markdown }: PageContent): string {
  const link = relativeFrom(path);
  const alternate = markdown ? `<link rel="alternate" type="text/markdown" href="${link(markdown)}">\n` : '';
  const menu = MENU.map(
    ([to, name]) => `<a href="${link(to)}"${to === path ? ' aria-current="page"' : ''}>${name}</a>`,
  );
  return `<!doctype html>
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
<search>
<form action="${link('/docs/search')}">
<input type="search" name="q" maxlength="${MAX_QUERY}" placeholder="Search" aria-label="Search the pages">
</form>
</search>
</header>
${body}
</body>
</html>
`;
}

/** Returns the page that renders the OpenAPI document and can send its requests. */
export const referencePage = (): string =>
  layout({
    path: '/docs',
    title: 'Reference',
    body: `\
<noscript><p class="page">The reference needs JavaScript; the other pages and the
<a href="v1/openapi.json">OpenAPI document</a> do not.</p></noscript>
<main id="reference"></main>
<script src="docs/assets/scalar.js"></script>
<script type="module" src="docs/assets/reference.js"></script>`,
  });

/** Returns the page of the search; `{{query}}` and `{{results}}` are those of a request. */
export const searchPage = (): string =>
  layout({
    path: '/docs/search',
    title: 'Search',
    body: '<main class="page">\n<h1>Search: {{query}}</h1>\n{{results}}\n</main>',
  });

/** Returns a function that makes paths relative to that of a page. */
export function relativeFrom(path: string): (to: string) => string {
  const up = '../'.repeat(path.split('/').length - 2);
  return (to) => up + to.slice(1);
}
