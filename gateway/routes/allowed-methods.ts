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

/** Has every method that Node accepts reach the framework, so that a known path answers 405 rather than 404. */
export function registerAllMethods(app: FastifyInstance): void {
  app.decorate('allowedMethods', new Map());
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
}

/** Names the methods of a path; every other one gets 405, without a look at its key or body. @rule 7.method_not_allowed */
export function allowOnly(app: FastifyInstance, url: string, ...allowed: string[]): void {
  app.allowedMethods.set(url, allowed.join(', '));
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

/** Returns the problem of a request that has no route: there is nothing at its path, or the path has other methods. */
export function routeProblem(app: Pick<FastifyInstance, 'allowedMethods'>, url: string): Problem {
  const fault = addressFault(url);
  if (fault) return fault;
  const path = decodeURI(url.replace(/^https?:\/\/[^/?]*/, '').split('?', 1)[0] ?? '');
  // Without a list of its parts, of which an address may have thousands.
  const parent = path.slice(0, path.lastIndexOf('/') + 1);
  const allowed =
    app.allowedMethods.get(path) ?? (path === parent ? undefined : app.allowedMethods.get(`${parent}:id`));
  if (allowed) return new Problem('method_not_allowed', { headers: { allow: allowed } });
  return new Problem('route_not_found');
}
