import { join } from 'node:path';
import etag from '@fastify/etag';
import files from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Negotiator from 'negotiator';
import { openApiDocument } from '../docs/openapi.ts';
import { pagesOf } from '../docs/pages.ts';
import { REFERENCE_FOLDER, REFERENCE_SCRIPT, ZIPPED_REFERENCE_SCRIPT } from '../docs/reference-script.ts';
import { allowOnly } from '../plugins/allowed-methods.ts';
import type { QuotaPolicy } from '../quota/quota-port.ts';

const OPENAPI_PATH = '/v1/openapi.json';

const ASSETS_FOLDER = join(import.meta.dirname, '../docs/assets');

/** How long whoever reads may keep what was read; seconds. */
const KEPT_SECONDS = 300;

/** How much of a file is read at a time; bytes. For a reader who takes nothing so much waits, and the 64 KiB that Node lets wait. */
export const READ_AHEAD_BYTES = 16 * 1024;

/** What a page may do: show itself. */
const CONTENT_POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];

/** The reference runs a script, which writes styles into the page and sends requests to this service. */
const REFERENCE_CONTENT_POLICY = [
  ...CONTENT_POLICY.filter((directive) => !directive.startsWith('style-src')),
  "style-src 'self' 'unsafe-inline'",
  "script-src 'self'",
  "connect-src 'self'",
];

const DOCS = { config: { operation: 'docs' } } as const;

/** What the service says about itself. It needs no key and is not counted. @rule 10.docs 10.openapi */
export function docsRoutes(app: FastifyInstance, publicUrl: string, policy: QuotaPolicy): void {
  const openApi = Buffer.from(JSON.stringify(openApiDocument(publicUrl)));
  app.get(OPENAPI_PATH, { config: { operation: 'openapi' } }, async (_request, reply) =>
    reply.type('application/json').send(openApi),
  );
  allowOnly(app, OPENAPI_PATH, 'GET');
  servePages(app, publicUrl, policy);
  serveFiles(app);
}

/** The pages stay in memory: they tell of this service, which writes no files. */
function servePages(app: FastifyInstance, publicUrl: string, policy: QuotaPolicy): void {
  app.register(async (scope) => {
    scope.register(etag, { weak: true });
    for (const { path, mediaType, text } of pagesOf({ publicUrl, ...policy })) {
      const headers = headersOf(path === '/docs' ? REFERENCE_CONTENT_POLICY : CONTENT_POLICY);
      const content = Buffer.from(text);
      scope.get(path, DOCS, async (_request, reply) => reply.headers(headers).type(mediaType).send(content));
      allowOnly(app, path, 'GET');
    }
  });
}

/** What the pages load. Each file has a route of its own, so that nothing else in its folder can be reached. */
function serveFiles(app: FastifyInstance): void {
  const headers = headersOf(CONTENT_POLICY);
  app.register(files, {
    root: ASSETS_FOLDER,
    serve: false,
    cacheControl: false,
    acceptRanges: false,
    // The tag is enough to ask by whether a file has changed.
    lastModified: false,
    setHeaders(reply, path) {
      reply.headers(headers);
      if (/\.js(?:\.gz)?$/.test(path)) reply.type('text/javascript; charset=utf-8');
      if (path.endsWith('.gz')) reply.header('content-encoding', 'gzip');
    },
  });
  const reading = { highWaterMark: READ_AHEAD_BYTES, etag: true };
  const serve = (name: string, send: (request: FastifyRequest, reply: FastifyReply) => FastifyReply) => {
    const path = `/docs/assets/${name}`;
    app.get(path, DOCS, async (request, reply) => send(request, reply));
    allowOnly(app, path, 'GET');
  };
  for (const name of ['style.css', 'icon.svg', 'reference.js']) {
    serve(name, (_request, reply) => reply.sendFile(name, ASSETS_FOLDER, reading));
  }
  serve('scalar.js', (request, reply) => {
    const coding = new Negotiator(request).encoding(['gzip', 'identity']);
    const name = coding === 'gzip' ? ZIPPED_REFERENCE_SCRIPT : REFERENCE_SCRIPT;
    return reply.header('vary', 'accept-encoding').sendFile(name, REFERENCE_FOLDER, reading);
  });
}

function headersOf(contentPolicy: readonly string[]): Record<string, string> {
  return {
    'cache-control': `public, max-age=${KEPT_SECONDS}`,
    'content-security-policy': contentPolicy.join('; '),
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  };
}
