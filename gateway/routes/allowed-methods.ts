import { METHODS } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../problems.ts';
import { addressFault } from '../request.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** The methods of each path, by the path's pattern. */
    allowedMethods: Map<string, string>;
  }
}

export type DocsHandler = (request: FastifyRequest, reply: FastifyReply) => FastifyReply;

/** Registers every method that Node accepts, so that a known path answers 405 rather than 404. */
export function registerAllMethods(app: FastifyInstance): void {
  app.decorate('allowedMethods', new Map());
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
}

/** Answers 405 to every other method on a path, without checking a key or reading a body. @rule 7.method_not_allowed */
export function allowOnly(app: FastifyInstance, url: string, ...allowed: string[]): void {
  app.allowedMethods.set(url, allowed.join(', '));
  app.route({
    method: METHODS.filter((method) => !allowed.includes(method)),
    url,
    onRequest: async () => {
      throw methodNotAllowed(allowed.join(', '));
    },
    handler: () => undefined,
  });
}

/** Serves a path of the documentation, without a key and uncounted, to GET and HEAD. */
export function serveDocs(app: FastifyInstance, url: string, handler: DocsHandler): void {
  app.route({
    method: ['GET', 'HEAD'],
    url,
    config: { operation: 'docs' },
    handler: async (request, reply) => handler(request, reply),
  });
  allowOnly(app, url, 'GET', 'HEAD');
}

/** Returns the problem of a request whose method Node does not know, and so refuses before it has a route. */
export function unknownMethod(app: Pick<FastifyInstance, 'allowedMethods'>, url: string): Problem {
  const fault = addressFault(url);
  if (fault) return fault;
  const [path = ''] = url.replace(/^https?:\/\/[^/]*/, '').split('?', 1);
  const segments = path.split('/').map(decodeURIComponent);
  for (const [pattern, allowed] of app.allowedMethods) {
    const parts = pattern.split('/');
    const isSame = parts.every((part, index) => (part.startsWith(':') ? segments[index] : part === segments[index]));
    if (isSame && parts.length === segments.length) return methodNotAllowed(allowed);
  }
  return new Problem('route_not_found');
}

const methodNotAllowed = (allow: string) => new Problem('method_not_allowed', { headers: { allow } });
