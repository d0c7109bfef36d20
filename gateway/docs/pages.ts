import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

/**
 * Where `npm run build:docs` lays the pages: `/docs` itself as `index.html`, each other one by its path, also as Markdown; and
 * `llms.txt`.
 */
export const PAGES_FOLDER = join(import.meta.dirname, 'html');

/** What the pages tell of the service that they are read from. Nobody knows it before it starts. */
export interface PageValues {
  readonly publicUrl: string;
  /** Requests that a key has per window. */
  readonly limit: number;
  readonly windowSeconds: number;
}

/** A page of the documentation, in HTML, in Markdown, or as plain text. */
export interface DocsPage {
  readonly path: string;
  readonly mediaType: string;
  readonly text: string;
}

/** How a file is served, by how its name ends; how what is filled in is written there. */
const KINDS: Readonly<Record<string, { readonly mediaType: string; readonly write: (value: string) => string }>> = {
  '.html': { mediaType: 'text/html', write: escapeHtml },
  '.md': { mediaType: 'text/markdown', write: String },
  '.txt': { mediaType: 'text/plain', write: String },
};

/** The pages of one service: each `{{name}}` in them is replaced by its value. */
export function pagesOf(values: PageValues): DocsPage[] {
  const files = readdirSync(PAGES_FOLDER, { recursive: true, encoding: 'utf8' });
  return files.flatMap((file) => {
    const kind = KINDS[extname(file)];
    if (!kind) return [];
    const text = readFileSync(join(PAGES_FOLDER, file), 'utf8');
    const filled = text.replace(/\{\{(\w+)\}\}/g, (_, name) => kind.write(String(values[name as keyof PageValues])));
    return { path: addressOf(file), mediaType: `${kind.mediaType}; charset=utf-8`, text: filled };
  });
}

/** Programs look for their index at the top. */
const addressOf = (file: string): string =>
  file === 'llms.txt' ? '/llms.txt' : `/docs/${file}`.replace(/(?:\/index)?\.html$/, '');

/** Writes text so that HTML shows it as it is. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
