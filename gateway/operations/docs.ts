import { basename, join } from 'node:path';
import etag from '@fastify/etag';
import files from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import type { QuotaPolicy } from '../admission/quota/quota-port.ts';
import { openApiDocument } from '../docs/openapi.ts';
import { isHtml, pagesOf } from '../docs/pages.ts';
import { REFERENCE_FOLDER, REFERENCE_SCRIPT } from '../docs/reference-script.ts';
import { allowOnly } from './allowed-methods.ts';

const OPENAPI_PATH = '/v1/openapi.json';

const ASSETS_FOLDER = join(import.meta.dirname, '../docs/assets');

/** The cache lifetime of pages and files; seconds. */
const MAX_AGE_SECONDS = 300;

/** The size of a file chunk; bytes. A client that reads nothing holds one chunk, and the 64 KiB that Node buffers. */
export const READ_AHEAD_BYTES = 16 * 1024;

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

const DOCS = { config: { operation: 'docs' } } as const;

/** Serves the documentation and the OpenAPI document, without a key and uncounted. @rule 10.docs 10.openapi */
export function docsRoutes(app: FastifyInstance, publicUrl: string, policy: QuotaPolicy): void {
  const openApi = Buffer.from(JSON.stringify(openApiDocument(publicUrl)));
  app.get(OPENAPI_PATH, { config: { operation: 'openapi' } }, async (_request, reply) =>
    reply.type('application/json').send(openApi),
  );
  allowOnly(app, OPENAPI_PATH, 'GET');
  servePages(app, publicUrl, policy);
  serveFiles(app);
}

/** Serves the pages from memory: they are rendered at the start, for this service's address and quota. */
function servePages(app: FastifyInstance, publicUrl: string, policy: QuotaPolicy): void {
  app.register(async (scope) => {
    scope.register(etag, { weak: true });
    for (const page of pagesOf({ publicUrl, ...policy })) {
      const { path, mediaType, text } = page;
      const headers = headersOf(path === '/docs' ? REFERENCE_CONTENT_POLICY : CONTENT_POLICY);
      const content = Buffer.from(text);
      scope.get(path, DOCS, async (_request, reply) => reply.headers(headers).type(mediaType).send(content));
      allowOnly(app, path, 'GET');
      if (!isHtml(page)) continue;
      // Relative, because the docs may be served under a prefix.
      const location = `../${basename(path)}`;
      scope.get(`${path}/`, DOCS, async (_request, reply) => reply.redirect(location, 308));
      allowOnly(app, `${path}/`, 'GET');
    }
  });
}

/** Serves the files that pages load. Each has its own route, so that nothing else in its folder can be reached. */
function serveFiles(app: FastifyInstance): void {
  const headers = headersOf(CONTENT_POLICY);
  app.register(files, {
    root: ASSETS_FOLDER,
    serve: false,
    cacheControl: false,
    acceptRanges: false,
    // The ETag is enough for revalidation.
    lastModified: false,
    preCompressed: true,
    setHeaders: (reply) => reply.headers(headers),
  });
  const options = { highWaterMark: READ_AHEAD_BYTES, etag: true };
  const serve = (name: string, folder: string) => {
    const path = `/docs/assets/${name}`;
    app.get(path, DOCS, async (request, reply) => {
      // Conditions under which a file may be changed. The library would answer 412.
      delete request.raw.headers['if-match'];
      delete request.raw.headers['if-unmodified-since'];
      return reply.sendFile(name, folder, options);
    });
    allowOnly(app, path, 'GET');
  };
  for (const name of ['style.css', 'icon.svg', 'site.js', 'reference.js']) serve(name, ASSETS_FOLDER);
  serve(REFERENCE_SCRIPT, REFERENCE_FOLDER);
}

function headersOf(contentPolicy: readonly string[]): Record<string, string> {
  return {
    'cache-control': `public, max-age=${MAX_AGE_SECONDS}`,
    'content-security-policy': contentPolicy.join('; '),
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  };
}
