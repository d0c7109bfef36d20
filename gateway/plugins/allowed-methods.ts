import { METHODS } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { Problem } from '../problems.ts';

/** Registers every method that Node accepts, so that a known path answers 405 rather than 404. */
export function registerAllMethods(app: FastifyInstance): void {
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
}

/** Answers 405 to every other method on a path, without checking a key or reading a body. @rule 7.method_not_allowed */
export function allowOnly(app: FastifyInstance, url: string, ...allowed: string[]): void {
  const problem = () => new Problem('method_not_allowed', { headers: { allow: allowed.join(', ') } });
  app.route({
    method: METHODS.filter((method) => !allowed.includes(method)),
    url,
    onRequest: async () => {
      throw problem();
    },
    handler: () => undefined,
  });
}
