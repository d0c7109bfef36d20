/**
 * Extracts the script of the reference for the gateway to serve. Its package offers it only through a Fastify plugin,
 * which loads much more, so the plugin runs once, at the end of `npm ci`.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import apiReference from '@scalar/fastify-api-reference';
import fastify from 'fastify';
import { REFERENCE_FOLDER, REFERENCE_SCRIPT, ZIPPED_REFERENCE_SCRIPT } from '../reference-script.ts';

const app = fastify();
app.register(apiReference, { routePrefix: '/docs', configuration: { url: '/v1/openapi.json' } });
const { statusCode, rawPayload: script } = await app.inject('/docs/js/scalar.js');
await app.close();
if (statusCode !== 200)
  throw new Error(`extracting the reference script failed: the plugin returned status ${statusCode}`);

mkdirSync(REFERENCE_FOLDER, { recursive: true });
writeFileSync(join(REFERENCE_FOLDER, REFERENCE_SCRIPT), script);
writeFileSync(join(REFERENCE_FOLDER, ZIPPED_REFERENCE_SCRIPT), gzipSync(script, { level: 9 }));
