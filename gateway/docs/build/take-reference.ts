/**
 * Lays the script of the reference out for the gateway to serve. Its package hands it out by a Fastify plugin alone, and loads
 * much that nobody needs here: so the plugin is asked once, at the end of `npm ci`, and never by a gateway.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import apiReference from '@scalar/fastify-api-reference';
import fastify from 'fastify';
import { REFERENCE_FOLDER, REFERENCE_SCRIPT, ZIPPED_REFERENCE_SCRIPT } from '../reference-script.ts';

const carrier = fastify();
carrier.register(apiReference, { routePrefix: '/docs', configuration: { url: '/v1/openapi.json' } });
const { statusCode, rawPayload: script } = await carrier.inject('/docs/js/scalar.js');
await carrier.close();
if (statusCode !== 200) throw new Error(`the package of the reference has no script: status ${statusCode}`);

mkdirSync(REFERENCE_FOLDER, { recursive: true });
writeFileSync(join(REFERENCE_FOLDER, REFERENCE_SCRIPT), script);
writeFileSync(join(REFERENCE_FOLDER, ZIPPED_REFERENCE_SCRIPT), gzipSync(script, { level: 9 }));
