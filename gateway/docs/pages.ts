import { escapeHtml } from './escape-html.ts';
import { referencePage, searchPage } from './layout.ts';
import { indexForPrograms, renderPages } from './render-pages.ts';

/** Values on the pages that are known only once the service starts. */
export interface PageValues {
  readonly publicUrl: string;
  /** The maximum number of requests of a key per window. */
  readonly limit: number;
  readonly windowSeconds: number;
}

/** A page of the documentation, in HTML, in Markdown, or as plain text. */
export interface DocsPage {
  readonly path: string;
  readonly mediaType: string;
  readonly text: string;
}

const RENDERED = renderPages();

/** Returns the pages, with the `{{name}}` of each value replaced by it. `llms.txt` is at the root, where programs look for it. */
export function pagesOf(values: PageValues): DocsPage[] {
  const fill = (text: string, escapeValue: (value: string) => string) =>
    text.replace(/\{\{(\w+)\}\}/g, (placeholder, name) =>
      name in values ? escapeValue(String(values[name as keyof PageValues])) : placeholder,
    );
  const page = (path: string, type: string, text: string) => ({
    path,
    mediaType: `text/${type}; charset=utf-8`,
    text: fill(text, type === 'html' ? escapeHtml : String),
  });
  return [
    page('/docs', 'html', referencePage()),
    page('/docs/search', 'html', searchPage()),
    page('/llms.txt', 'plain', indexForPrograms()),
    ...RENDERED.flatMap(({ path, html, markdown }) => [
      page(path, 'html', html),
      page(`${path}.md`, 'markdown', markdown),
    ]),
  ];
}
