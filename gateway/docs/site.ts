import { hash } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

/** The folder of the built site, which `npm run build:docs` writes. */
export const SITE_FOLDER = join(import.meta.dirname, 'site');

/** Values on the pages that are known only when a gateway starts. `limit` is a key's requests per window. */
export type SiteValues = Readonly<{ publicUrl: string; limit: number; windowSeconds: number }>;

/** The built files contain these texts instead of the values. They have no character that Markdown, HTML or JavaScript would escape. */
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

/** A file of the site, ready to send. */
export interface SiteFile {
  readonly mediaType: string;
  /** Derived from the bytes, so gateways of one release agree on it. */
  readonly etag: string;
  /** Undefined for a large file, which is sent unchanged from its folder. */
  readonly content: Buffer | undefined;
  /** Hashes of inline scripts for the Content-Security-Policy of a page. */
  readonly scripts: readonly string[];
}

export interface Site {
  /** The names of files below SITE_FOLDER, by the paths that serve them. */
  readonly paths: ReadonlyMap<string, string>;
  /** Reads and caches a file with its placeholders replaced; undefined if it was deleted since the site was opened. */
  load(name: string): SiteFile | undefined;
}

/** The page for unknown paths. */
export const NO_PAGE = '404.html';

/** Opens the built site. A site that was not built has no paths. */
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
    paths: new Map(names.flatMap((name) => listPaths(name).map((path) => [path, name]))),
    load(name) {
      if (!files.has(name) && existsSync(join(folder, name))) files.set(name, read(name));
      return files.get(name);
    },
  };
}

/** Returns the paths that serve a file. `llms.txt` is at the root, where programs look for it. */
function listPaths(name: string): string[] {
  if (name === 'index.html') return ['/docs', '/docs/'];
  if (name === 'index.md') return ['/docs.md'];
  return [name.endsWith('.txt') ? `/${name}` : `/docs/${name.replace(/\.html$/, '')}`];
}

/** Replaces the placeholders in a text. No value needs escaping: the settings ensure that. */
export function fillPlaceholders(text: string, { publicUrl, limit, windowSeconds }: SiteValues): string {
  const publicPath = new URL(publicUrl).pathname.replace(/\/$/, '');
  return text
    .replaceAll(PLACEHOLDERS.publicUrl, publicUrl)
    .replaceAll(PLACEHOLDERS.publicPath, publicPath)
    .replaceAll(PLACEHOLDERS.windowSeconds, String(windowSeconds))
    .replaceAll(PLACEHOLDERS.limit, String(limit));
}
