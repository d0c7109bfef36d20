import type { FastifyInstance } from 'fastify';
import { openApiDocument } from '../docs/openapi.ts';
import { allowOnly } from '../plugins/allowed-methods.ts';

const OPENAPI_PATH = '/v1/openapi.json';

/** What the service says about itself. It needs no key and is not counted. */
export function docsRoutes(app: FastifyInstance, publicUrl: string): void {
  const openApi = Buffer.from(JSON.stringify(openApiDocument(publicUrl)));
  app.get(OPENAPI_PATH, async (_request, reply) => reply.type('application/json').send(openApi));
  allowOnly(app, OPENAPI_PATH, 'GET');
}
