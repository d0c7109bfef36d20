import { join } from 'node:path';

/** The folder to which `npm ci` extracts the script of the reference, plain and gzipped (`.gz`). */
export const REFERENCE_FOLDER = join(import.meta.dirname, '../../node_modules/.reference');

export const REFERENCE_SCRIPT = 'scalar.js';
