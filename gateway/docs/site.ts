import { hash } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

/** The folder of the built site; `npm run build:docs` writes it. */
export const SITE_FOLDER = join(import.meta.dirname, 'site');

/** Values on the pages that are known only once a gateway starts; `limit` is that of a key per window. */
export type SiteValues = Readonly<{ publicUrl: string; limit: number; windowSeconds: number }>;

/** The built files have these in place of the values. None has a character that Markdown, HTML or JavaScript would escape. */
export const PLACEHOLDERS = {
  publicUrl: 'https://public-url.invalid',
  publicPath: '/public-path.invalid',
  limit: 'limit.invalid',
  windowSeconds: 'window-seconds.invalid',
} as const;

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.md': 'text/markdown; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.js': 'application/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
};

/** A file of the site, as it is sent. */
export interface SiteFile {
  readonly mediaType: string;
  /** It is made of the bytes, so that the gateways of one release have the same. */
  readonly etag: string;
  /** Undefined for a large file, which is sent from its folder as it is. */
  readonly content: Buffer | undefined;
  /** The hashes of the scripts within a page, as its Content-Security-Policy names them. */
  readonly scripts: readonly string[];
}

/** The site of a gateway. */
export interface Site {
  /** The names of the files below SITE_FOLDER, by the paths that they are served at. */
  readonly paths: ReadonlyMap<string, string>;
  /** Reads a file, with the values in place of its placeholders, and keeps it; undefined if it has gone since the site was opened. */
  load(name: string): SiteFile | undefined;
}

/** The page for a path that is none. */
export const NO_PAGE = '404.html';

/** Opens the built site; one that was not built has no paths. */
export function openSite(values: SiteValues, folder = SITE_FOLDER): Site {
  const names = globSync('**/*.*', { cwd: folder }).filter((name) => name !== NO_PAGE && !name.endsWith('.gz'));
  const files = new Map<string, SiteFile>();
  const read = (name: string): SiteFile => {
    const path = join(folder, name);
    const isLarge = existsSync(`${path}.gz`);
    const bytes = readFileSync(path);
    const content = isLarge ? bytes : Buffer.from(fillPlaceholders(bytes.toString(), values));
    const scripts =
      extname(name) === '.html' ? content.toString().matchAll(/<script id="[\w-]+">([^<]+)<\/script>/g) : [];
    return {
      mediaType: MEDIA_TYPES[extname(name)] ?? 'application/octet-stream',
      etag: `W/"${hash('sha256', content, 'base64url')}"`,
      content: isLarge ? undefined : content,
      scripts: [...scripts].map(([, script = '']) => `'sha256-${hash('sha256', script, 'base64')}'`),
    };
  };
  return {
    paths: new Map(names.flatMap((name) => pathsOf(name).map((path) => [path, name]))),
    load(name) {
      if (!files.has(name) && existsSync(join(folder, name))) files.set(name, read(name));
      return files.get(name);
    },
  };
}

/** Returns the paths at which a file is served. `llms.txt` is at the root, where programs look for it. */
function pathsOf(name: string): string[] {
  if (name === 'index.html') return ['/docs', '/docs/'];
  if (name === 'index.md') return ['/docs.md'];
  return [name.endsWith('.txt') ? `/${name}` : `/docs/${name.replace(/\.html$/, '')}`];
}

/** Replaces the placeholders of a text. No value has a character that needs escaping: settings see to that. */
export function fillPlaceholders(text: string, { publicUrl, limit, windowSeconds }: SiteValues): string {
  const publicPath = new URL(publicUrl).pathname.replace(/\/$/, '');
  return text
    .replaceAll(PLACEHOLDERS.publicUrl, publicUrl)
    .replaceAll(PLACEHOLDERS.publicPath, publicPath)
    .replaceAll(PLACEHOLDERS.windowSeconds, String(windowSeconds))
    .replaceAll(PLACEHOLDERS.limit, String(limit));
}
