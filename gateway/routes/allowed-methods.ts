import { METHODS } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../problems.ts';
import { addressFault } from '../request.ts';

/** The methods of each path, by the path's pattern. */
export type AllowedMethods = Map<string, string>;

declare module 'fastify' {
  interface FastifyInstance {
    allowedMethods: AllowedMethods;
  }
}

export type DocsHandler = (request: FastifyRequest, reply: FastifyReply) => FastifyReply;

/** Lets the framework accept every method that Node accepts, so that a known path answers 405 instead of 404. */
export function registerAllMethods(app: FastifyInstance): void {
  app.decorate('allowedMethods', new Map());
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
}

/** Declares the methods of a path. Other methods get 405, whatever the key or body. @rule 7.method_not_allowed */
export function allowOnly(app: FastifyInstance, url: string, ...allowed: string[]): void {
  app.allowedMethods.set(url, allowed.join(', '));
}

/** Serves a path of the documentation for GET and HEAD, without a key, uncounted. */
export function serveDocs(app: FastifyInstance, url: string, handler: DocsHandler): void {
  app.route({
    method: ['GET', 'HEAD'],
    url,
    config: { operation: 'docs' },
    handler: async (request, reply) => handler(request, reply),
  });
  allowOnly(app, url, 'GET', 'HEAD');
}

/** Returns the problem of a request without a route: an invalid address, an unknown path, or a path with other methods. */
export function routeProblem(allowedMethods: AllowedMethods, url: string): Problem {
  const fault = addressFault(url);
  if (fault) return fault;
  const path = decodeURI(url.replace(/^https?:\/\/[^/?]*/, '').split('?', 1)[0] ?? '');
  // The path is not split, because it may have thousands of parts.
  const parent = path.slice(0, path.lastIndexOf('/') + 1);
  const allowed = allowedMethods.get(path) ?? (path === parent ? undefined : allowedMethods.get(`${parent}:id`));
  if (allowed) return new Problem('method_not_allowed', { headers: { allow: allowed } });
  return new Problem('route_not_found');
}
