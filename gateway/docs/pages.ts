import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

/**
 * The output of `npm run build:docs`: `/docs` itself as `index.html`, each other page by its path, also as Markdown;
 * and `llms.txt`.
 */
export const PAGES_FOLDER = join(import.meta.dirname, 'html');

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

/** The media type and the escaping of values, by file extension. */
const KINDS: Readonly<Record<string, { readonly mediaType: string; readonly escape: (value: string) => string }>> = {
  '.html': { mediaType: 'text/html', escape: escapeHtml },
  '.md': { mediaType: 'text/markdown', escape: String },
  '.txt': { mediaType: 'text/plain', escape: String },
};

/** Returns the pages, with the `{{name}}` of each value replaced by it. */
export function pagesOf(values: PageValues): DocsPage[] {
  const files = readdirSync(PAGES_FOLDER, { recursive: true, encoding: 'utf8' });
  return files.flatMap((file) => {
    const kind = KINDS[extname(file)];
    if (!kind) return [];
    const text = readFileSync(join(PAGES_FOLDER, file), 'utf8');
    const filled = text.replace(/\{\{(\w+)\}\}/g, (placeholder, name) =>
      name in values ? kind.escape(String(values[name as keyof PageValues])) : placeholder,
    );
    return { path: addressOf(file), mediaType: `${kind.mediaType}; charset=utf-8`, text: filled };
  });
}

/** `llms.txt` is at the root, where programs look for it. */
const addressOf = (file: string): string =>
  file === 'llms.txt' ? '/llms.txt' : `/docs/${file}`.replace(/(?:\/index)?\.html$/, '');

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
