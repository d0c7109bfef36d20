import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where `npm run build:docs` lays the pages: `/docs` itself as `index.html`, each other one by its path. */
export const PAGES_FOLDER = join(import.meta.dirname, 'html');

/** What the pages tell of the service that they are read from. Nobody knows it before it starts. */
export interface PageValues {
  readonly publicUrl: string;
  /** Requests that a key has per window. */
  readonly limit: number;
  readonly windowSeconds: number;
}

/** A page of the documentation. */
export interface DocsPage {
  readonly path: string;
  readonly html: string;
}

/** The pages of one service: each `{{name}}` in them is replaced by its value. */
export function pagesOf(values: PageValues): DocsPage[] {
  const files = readdirSync(PAGES_FOLDER, { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith('.html'))
    .map((file) => ({
      path: `/docs/${file}`.replace(/(?:\/index)?\.html$/, ''),
      html: filled(readFileSync(join(PAGES_FOLDER, file), 'utf8'), values),
    }));
}

/** Writes text so that HTML shows it as it is. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

function filled(html: string, values: PageValues): string {
  return html.replace(/\{\{(\w+)\}\}/g, (_, name) => escapeHtml(String(values[name as keyof PageValues])));
}
