/**
 * `npm run build:docs`: builds the pages of `/docs` that this installation's gateway serves.
 *
 * Usage: main.ts [FOLDER]
 */
import { SITE_FOLDER } from '../site.ts';
import { buildSite } from './build-site.ts';

await buildSite(process.argv[2] ?? SITE_FOLDER);
