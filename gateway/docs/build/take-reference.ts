/**
 * Extracts the script of the reference for the gateway to serve. Its package offers it only through a Fastify plugin,
 * which loads much more, so the plugin runs once, at the end of `npm ci`.
 *
 * Usage: take-reference.ts [FOLDER]
 */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import apiReference from '@scalar/fastify-api-reference';
import fastify from 'fastify';
import { REFERENCE_FOLDER, REFERENCE_SCRIPT } from '../reference-script.ts';

const app = fastify();
app.register(apiReference, { routePrefix: '/docs', configuration: { url: '/v1/openapi.json' } });
const { statusCode, rawPayload: script } = await app.inject('/docs/js/scalar.js');
await app.close();
if (statusCode !== 200)
  throw new Error(`extracting the reference script failed: the plugin returned status ${statusCode}`);

const folder = process.argv[2] ?? REFERENCE_FOLDER;
mkdirSync(folder, { recursive: true });
replace(REFERENCE_SCRIPT, script);
replace(`${REFERENCE_SCRIPT}.gz`, gzipSync(script, { level: 9 }));

/** Replaces a file as a whole: a gateway may be sending the former one, and has announced its length. */
function replace(name: string, content: Buffer): void {
  const next = join(folder, `${name}.${process.pid}`);
  writeFileSync(next, content);
  renameSync(next, join(folder, name));
}
