import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import { acceptsGzip } from '../accepts-gzip.ts';
import { openApiDocument } from '../docs/openapi.ts';
import { renderPages } from '../docs/pages.ts';
import { referencePage, referenceScript } from '../docs/reference.ts';
import { allowOnly } from '../plugins/allowed-methods.ts';
import type { QuotaPolicy } from '../quota/quota.ts';

const OPENAPI_PATH = '/v1/openapi.json';

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

/** What the service says about itself. It needs no key and is not counted. @rule 10.docs 10.openapi */
export function docsRoutes(app: FastifyInstance, publicUrl: string, policy: QuotaPolicy): void {
  const openApi = Buffer.from(JSON.stringify(openApiDocument(publicUrl)));
  app.get(OPENAPI_PATH, { config: { operation: 'openapi' } }, async (_request, reply) =>
    reply.type('application/json').send(openApi),
  );
  allowOnly(app, OPENAPI_PATH, 'GET');

  const html = 'text/html; charset=utf-8';
  const { path, html: reference } = referencePage();
  serve(app, { path, mediaType: html, read: async () => reference, contentPolicy: REFERENCE_CONTENT_POLICY });
  for (const { path, html: page } of renderPages(publicUrl, policy)) {
    serve(app, { path, mediaType: html, read: async () => page });
  }
  for (const [name, mediaType] of [
    ['style.css', 'text/css; charset=utf-8'],
    ['icon.svg', 'image/svg+xml'],
    ['reference.js', 'text/javascript; charset=utf-8'],
  ] as const) {
    const file = join(import.meta.dirname, '../docs/assets', name);
    serve(app, { path: `/docs/assets/${name}`, mediaType, read: () => readFile(file) });
  }
  serve(app, {
    path: '/docs/assets/scalar.js',
    mediaType: 'text/javascript; charset=utf-8',
    read: referenceScript,
  });
}

interface Resource {
  readonly path: string;
  readonly mediaType: string;
  /** Reads what is at the path, when it is first asked for. */
  readonly read: () => Promise<Buffer | string>;
  readonly contentPolicy?: readonly string[];
}

function serve(app: FastifyInstance, { path, mediaType, read, contentPolicy = CONTENT_POLICY }: Resource): void {
  const headers = {
    'cache-control': 'public, max-age=300',
    'content-security-policy': contentPolicy.join('; '),
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    vary: 'accept-encoding',
  };
  let loading: Promise<Loaded> | undefined;
  app.get(path, { config: { operation: 'docs' } }, async (request, reply) => {
    loading ??= load(read);
    const { content, zipped, etag } = await loading;
    reply.headers({ ...headers, etag });
    if (request.headers['if-none-match'] === etag) return reply.code(304).send();
    reply.type(mediaType);
    if (!acceptsGzip(request.headers['accept-encoding'])) return reply.send(content);
    return reply.header('content-encoding', 'gzip').send(zipped);
  });
  allowOnly(app, path, 'GET');
}

interface Loaded {
  readonly content: Buffer;
  readonly zipped: Buffer;
  /** Weak: it stands for the content, zipped or not. */
  readonly etag: string;
}

async function load(read: Resource['read']): Promise<Loaded> {
  const content = Buffer.from(await read());
  const digest = hash('sha256', content, 'base64url');
  return { content, zipped: await promisify(gzip)(content), etag: `W/"${digest.slice(0, 16)}"` };
}
