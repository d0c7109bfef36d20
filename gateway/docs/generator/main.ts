/**
 * `npm run build:docs`: builds the pages below `/docs` that the gateway of this installation serves.
 *
 * Usage: main.ts [FOLDER]
 */
import { SITE_FOLDER } from '../site.ts';
import { buildSite } from './build-site.ts';

await buildSite(process.argv[2] ?? SITE_FOLDER);
