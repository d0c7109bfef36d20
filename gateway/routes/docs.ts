import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Readable } from 'node:stream';
import etag from '@fastify/etag';
import files from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PACKAGES_FOLDER } from '../../common/package-settings.ts';
import { quotaPolicy } from '../config.ts';
import { openApiDocument } from '../docs/openapi.ts';
import { findPackages, type Packages } from '../docs/packages.ts';
import { isHtml, renderPages, TRY_IT_OUT_PATH } from '../docs/pages.ts';
import { REFERENCE_FOLDER, REFERENCE_SCRIPT } from '../docs/reference-script.ts';
import { allowOnly, serveDocs } from './allowed-methods.ts';
import { packageRoutes } from './packages.ts';

const OPENAPI_PATH = '/v1/openapi.json';

const ASSETS_FOLDER = join(import.meta.dirname, '../docs/assets');

/** The cache lifetime of pages and files; seconds. */
const MAX_AGE_SECONDS = 300;

/** The size of a file chunk; bytes. A client that reads nothing holds one chunk, and the 64 KiB that Node buffers. */
export const READ_AHEAD_BYTES = 16 * 1024;

/** How files are sent: whole, and with no header but those that are set here. The ETag is enough for revalidation. */
const SEND = { cacheControl: false, acceptRanges: false, lastModified: false };
const CHUNKS = { highWaterMark: READ_AHEAD_BYTES, acceptRanges: false };

/** A page may load its own style, images and script, which may read from this service, and nothing else. */
const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "connect-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];

/** The reference's script writes styles into the page. */
const REFERENCE_CONTENT_POLICY = [
  ...CONTENT_POLICY.filter((directive) => !directive.startsWith('style-src')),
  "style-src 'self' 'unsafe-inline'",
];

/** Serves the documentation, the packages and the OpenAPI document, without a key and uncounted. @rule 10.docs 10.openapi */
export function docsRoutes(app: FastifyInstance): void {
  const { PUBLIC_URL: publicUrl, KEPT_PACKAGES_FOLDER } = app.config;
  // Kept packages come first: the lock files of websites have their checksums.
  const packages = findPackages([KEPT_PACKAGES_FOLDER ?? [], PACKAGES_FOLDER].flat());
  const openApi = Buffer.from(JSON.stringify(openApiDocument(publicUrl)));
  app.get(OPENAPI_PATH, { config: { operation: 'openapi' } }, async (_request, reply) =>
    reply.type('application/json').send(openApi),
  );
  allowOnly(app, OPENAPI_PATH, 'GET');
  servePages(app, packages);
  serveFiles(app);
  servePackages(app, publicUrl, packages);
}

/** Serves the packages from their folders, in scopes of their own, because their headers are. */
function servePackages(app: FastifyInstance, publicUrl: string, packages: Packages): void {
  app.register(async (scope) => {
    scope.register(files, { ...SEND, serve: false, etag: false, contentType: false });
    packageRoutes(scope, publicUrl, packages, createDocsHeaders(CONTENT_POLICY), (request, reply, { name, folder }) => {
      ignoreConditionsOfChanges(request);
      return reply.sendFile(name, folder, CHUNKS);
    });
  });
}

/** Serves the pages from memory: they are rendered at the start, for this service's address and quota. */
function servePages(app: FastifyInstance, packages: Packages): void {
  app.register(async (scope) => {
    scope.register(etag, { weak: true });
    const pages = renderPages({ publicUrl: app.config.PUBLIC_URL, ...quotaPolicy(app.config) }, packages).map(
      (page) => ({
        ...page,
        content: Buffer.from(page.text),
      }),
    );
    for (const page of pages) {
      const { path } = page;
      const headers = createDocsHeaders(path === TRY_IT_OUT_PATH ? REFERENCE_CONTENT_POLICY : CONTENT_POLICY);
      const markdown = pages.find((each) => each.path === `${path}.md`);
      serveDocs(scope, path, (request, reply) => {
        const { mediaType, content } = markdown && prefersMarkdown(request) ? markdown : page;
        if (markdown) reply.header('vary', 'accept');
        return reply.headers(headers).type(mediaType).send(content);
      });
      // Where programs look for it besides the root.
      if (path.endsWith('.txt'))
        serveDocs(scope, `/docs${path}`, (_request, reply) => reply.redirect(`..${path}`, 308));
      if (!isHtml(page)) continue;
      // Relative, because the docs may be served under a prefix.
      const location = `../${basename(path)}`;
      serveDocs(scope, `${path}/`, (_request, reply) => reply.redirect(location, 308));
    }
  });
}

/** The maximum number of media types that are read, and of parameters of each. */
const MAX_MEDIA_TYPES = 20;

/** Whether a client names Markdown, as assistants do, and ranks HTML no higher. */
function prefersMarkdown({ headers }: FastifyRequest): boolean {
  const ranked = (headers.accept ?? '').split(',', MAX_MEDIA_TYPES).map((each) => {
    const [type = '', ...parameters] = each.split(';', MAX_MEDIA_TYPES).map((part) => part.trim().toLowerCase());
    return [type, Number(parameters.find((part) => part.startsWith('q='))?.slice(2) ?? 1)] as const;
  });
  const {
    'text/markdown': markdown = 0,
    '*/*': any = 0,
    'text/*': anyText = any,
    'text/html': html = anyText,
  } = Object.fromEntries(ranked);
  return markdown > 0 && markdown >= html;
}

const tags = new Map<string, string>();

/** Returns the ETag of a file. It is made of the bytes, so that the gateways of one release have the same. */
function toEtag(path: string): string {
  const tag = tags.get(path) ?? `W/"${hash('sha256', readFileSync(path), 'base64url')}"`;
  tags.set(path, tag);
  return tag;
}

/** Serves the files that pages load. Each has its own route, so that nothing else in its folder can be reached. */
function serveFiles(app: FastifyInstance): void {
  app.register(async (scope) => {
    const headers = createDocsHeaders(CONTENT_POLICY);
    const setHeaders = (reply: FastifyReply, path: string) => void reply.headers({ ...headers, etag: toEtag(path) });
    scope.register(files, { ...SEND, root: ASSETS_FOLDER, serve: false, etag: false, preCompressed: true, setHeaders });
    scope.addHook('onSend', async ({ headers: { 'if-none-match': known = '' } }, reply, payload) => {
      const isKnown = known.trim() === '*' || known.includes(`${reply.getHeader('etag')}`);
      if (reply.statusCode !== 200 || !isKnown) return payload;
      (payload as Readable | null)?.destroy();
      reply.code(304).removeHeader('content-length');
      return null;
    });
    const serve = (name: string, folder: string) => {
      serveDocs(scope, `/docs/assets/${name}`, (request, reply) => {
        ignoreConditionsOfChanges(request);
        return reply.sendFile(name, folder, CHUNKS);
      });
    };
    for (const name of ['style.css', 'icon.svg', 'outbox.svg', 'site.js', 'reference.js']) serve(name, ASSETS_FOLDER);
    serve(REFERENCE_SCRIPT, REFERENCE_FOLDER);
  });
}

/** Conditions under which a file may be changed. The library would answer 412. */
function ignoreConditionsOfChanges({ raw }: FastifyRequest): void {
  delete raw.headers['if-match'];
  delete raw.headers['if-unmodified-since'];
}

function createDocsHeaders(contentPolicy: readonly string[]): Record<string, string> {
  return {
    'cache-control': `public, max-age=${MAX_AGE_SECONDS}`,
    'content-security-policy': contentPolicy.join('; '),
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  };
}
