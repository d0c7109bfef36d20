import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  listFiles,
  missingPackage,
  PACKAGES_PATH,
  type PackageFile,
  type Packages,
  packageIndexes,
} from '../docs/packages.ts';
import { Problem } from '../problems.ts';
import { type DocsHandler, serveDocs } from './allowed-methods.ts';

/** How long caches may keep an archive without revalidation. Its name contains its version, so its bytes never change. */
const FOREVER = 'public, max-age=31536000, immutable';

/** Sends a file with the headers of the reply. */
type SendFile = (request: FastifyRequest, reply: FastifyReply, file: PackageFile) => FastifyReply;

/**
 * Serves the packages and their indexes. Each file has its own route, so nothing else in its folder is reachable. Any other path gets a 404
 * that lists what exists.
 *
 * @param headers the headers of all docs
 */
export function packageRoutes(
  app: FastifyInstance,
  publicUrl: string,
  packages: Packages,
  headers: Readonly<Record<string, string>>,
  sendFile: SendFile,
): void {
  const serve = (path: string, handler: DocsHandler) => serveDocs(app, PACKAGES_PATH + path, handler);
  for (const { path, mediaType, text } of packageIndexes(packages, publicUrl)) {
    const content = Buffer.from(text);
    serve(path, (_request, reply) => reply.headers(headers).type(mediaType).send(content));
  }
  for (const file of packages.releases.flatMap(listFiles)) {
    serve(`/${file.name}`, (request, reply) => sendPackage(request, reply, file));
  }
  const detail = missingPackage(packages, publicUrl);
  serve('/*', () => {
    throw new Problem('route_not_found', { detail });
  });

  function sendPackage(request: FastifyRequest, reply: FastifyReply, file: PackageFile): FastifyReply {
    const { mediaType, sha256 } = file;
    reply.headers({ ...headers, 'content-type': mediaType });
    if (sha256 !== undefined) {
      // The hash of the bytes, so gateways on several machines agree on it.
      const etag = `"${sha256}"`;
      reply.headers({ 'cache-control': FOREVER, etag });
      const known = request.headers['if-none-match'] ?? '';
      if (known.includes(etag) || known.trim() === '*') return reply.code(304).send();
    }
    return sendFile(request, reply, file);
  }
}
