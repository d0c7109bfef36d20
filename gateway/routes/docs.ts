import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import files from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PACKAGES_FOLDER } from '../../common/package-settings.ts';
import { quotaPolicy } from '../config.ts';
import { openApiDocument } from '../docs/openapi.ts';
import { findPackages, notBuilt, type Packages } from '../docs/packages.ts';
import { NO_PAGE, openSite, SITE_FOLDER, type Site } from '../docs/site.ts';
import { Problem } from '../problems.ts';
import { allowOnly, serveDocs } from './allowed-methods.ts';
import { packageRoutes } from './packages.ts';

const OPENAPI_PATH = '/v1/openapi.json';

/** The cache lifetime of pages and files; seconds. */
const MAX_AGE_SECONDS = 300;

/** The size of a file chunk; bytes. A client that reads nothing makes the gateway hold one chunk, and the 64 KiB that Node buffers. */
export const READ_AHEAD_BYTES = 16 * 1024;

/** Options for sending whole files, with only the headers set here. The ETag is enough for revalidation. */
const SEND = { cacheControl: false, acceptRanges: false, lastModified: false };
const CHUNKS = { highWaterMark: READ_AHEAD_BYTES, acceptRanges: false };

/** Returns a policy that lets a page load only its own styles, pictures and scripts, and read only from this service. */
const contentPolicy = (name?: string, scripts: readonly string[] = []): string =>
  [
    "default-src 'none'",
    ["script-src 'self'", ...scripts].join(' '),
    "connect-src 'self'",
    // The reference's script writes styles into its page. On the others only the dark mode switch does: a style with this hash.
    `style-src 'self' ${name === TRY_IT_OUT ? "'unsafe-inline'" : "'sha256-skqujXORqzxt1aE0NNXxujEanPTX6raoqSscTV/Ww/Y='"}`,
    // Styles contain icons.
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

/** The page that can send requests. */
const TRY_IT_OUT = 'try-it-out.html';

/** Serves the documentation, the packages and the OpenAPI document, without a key and uncounted. @rule 10.docs 10.openapi */
export function docsRoutes(app: FastifyInstance): void {
  const { PUBLIC_URL: publicUrl, KEPT_PACKAGES_FOLDER } = app.config;
  // Kept packages come first, because websites' lock files have their checksums.
  const packages = findPackages([KEPT_PACKAGES_FOLDER ?? [], PACKAGES_FOLDER].flat());
  const openApi = Buffer.from(JSON.stringify(openApiDocument(publicUrl)));
  app.get(OPENAPI_PATH, { config: { operation: 'openapi' } }, async (_request, reply) =>
    reply.type('application/json').send(openApi),
  );
  allowOnly(app, OPENAPI_PATH, 'GET');
  serveSite(app, openSite({ publicUrl, ...quotaPolicy(app.config) }));
  servePackages(app, publicUrl, packages);
}

/** Serves the packages from their folders, in a separate scope because they have their own headers. */
function servePackages(app: FastifyInstance, publicUrl: string, packages: Packages): void {
  app.register(async (scope) => {
    scope.register(files, { ...SEND, serve: false, etag: false, contentType: false });
    const headers = createDocsHeaders(contentPolicy());
    packageRoutes(scope, publicUrl, packages, headers, (request, reply, { name, folder }) => {
      ignoreConditionsOfChanges(request);
      return reply.sendFile(name, folder, CHUNKS);
    });
  });
}

/** Serves the built site. Only files that existed at the start are served, so no path leads out of its folder. */
function serveSite(app: FastifyInstance, { paths, load }: Site): void {
  for (const path of paths.keys()) allowOnly(app, path, 'GET', 'HEAD');
  app.get('/', async (request, reply) => {
    if (!isBrowser(request)) throw new Problem('route_not_found');
    return reply.redirect('docs');
  });
  app.register(async (scope) => {
    scope.register(files, { ...SEND, root: SITE_FOLDER, serve: false, etag: false, preCompressed: true });
    scope.addHook('onSend', answerNotModified);
    const send = (reply: FastifyReply, name: string) => {
      const file = load(name);
      // The docs were rebuilt after this gateway started.
      if (!file) throw new Problem('route_not_found', { detail: notBuilt('docs') });
      const { content, mediaType, etag, scripts } = file;
      reply.headers({ ...createDocsHeaders(contentPolicy(name, scripts)), etag, 'content-type': mediaType });
      ignoreConditionsOfChanges(reply.request);
      return content ? reply.send(content) : reply.sendFile(name, CHUNKS);
    };
    scope.addHook('onRequest', async (request, reply) => {
      const path = toPath(request);
      if (paths.has(path)) return;
      // Relative, because the docs may be served under a prefix. Programs also look for `llms.txt` here.
      if (paths.has(path.slice('/docs'.length))) return reply.redirect(`..${path.slice('/docs'.length)}`, 308);
      if (paths.has(path.replace(/\/$/, ''))) return reply.redirect(`../${basename(path)}`, 308);
      if (paths.size === 0) throw new Problem('route_not_found', { detail: notBuilt('docs') });
      if (!isBrowser(request)) throw new Problem('route_not_found');
      return send(reply.code(404), NO_PAGE);
    });
    for (const url of ['/docs', '/docs/', '/docs/*', '/docs.md', '/llms.txt', '/llms-full.txt']) {
      serveDocs(scope, url, (request, reply) => {
        const path = toPath(request);
        const markdown = paths.get(`${path}.md`);
        if (markdown) reply.header('vary', 'accept');
        return send(reply, (prefersMarkdown(request) && markdown) || (paths.get(path) as string));
      });
    }
  });
}

const isBrowser = ({ headers }: FastifyRequest): boolean => headers.accept?.includes('text/html') === true;

/** The maximum number of media types that are read, and of parameters of each. */
const MAX_MEDIA_TYPES = 20;

/** Returns whether a client names Markdown, as assistants do, and ranks HTML no higher. */
function prefersMarkdown({ headers }: FastifyRequest): boolean {
  const ranked = (headers.accept ?? '').split(',', MAX_MEDIA_TYPES).map((entry) => {
    const [type = '', ...parameters] = entry.split(';', MAX_MEDIA_TYPES).map((part) => part.trim().toLowerCase());
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

/** Answers 304 to a client that already has the file. */
async function answerNotModified(
  { headers: { 'if-none-match': known = '' } }: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
): Promise<unknown> {
  const isKnown = known.trim() === '*' || known.includes(`${reply.getHeader('etag')}`);
  if (reply.statusCode !== 200 || !isKnown) return payload;
  (payload as Readable | null)?.destroy?.();
  reply.code(304).removeHeader('content-length');
  return null;
}

/** Removes the conditions of requests that change a file, because the library would answer 412. */
function ignoreConditionsOfChanges({ raw }: FastifyRequest): void {
  delete raw.headers['if-match'];
  delete raw.headers['if-unmodified-since'];
}

const toPath = ({ url }: FastifyRequest): string => url.split('?', 1)[0] ?? '';

function createDocsHeaders(contentPolicy: string): Record<string, string> {
  return {
    'cache-control': `public, max-age=${MAX_AGE_SECONDS}`,
    'content-security-policy': contentPolicy,
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  };
}
