import { join } from 'node:path';

/** Where the script of the reference lies beside the packages, plain and zipped, since `npm ci` took it out of its package. */
export const REFERENCE_FOLDER = join(import.meta.dirname, '../../node_modules/.reference');

export const REFERENCE_SCRIPT = 'scalar.js';
export const ZIPPED_REFERENCE_SCRIPT = `${REFERENCE_SCRIPT}.gz`;
