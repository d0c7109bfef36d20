/**
 * `npm run docs`: serves all pages with one menu and one search: those of `/docs`, and those of this project for operators and for a CRM.
 * A change of the theme is shown at once; for one of a page, start it again.
 */
import { createServer } from 'vitepress';
import { fillPlaceholders } from '../site.ts';
import { DOCS, writeSources } from './build-site.ts';
import { PICTURES, projectPages } from './project-pages.ts';

const demo = { publicUrl: 'http://127.0.0.1:8080', limit: 600, windowSeconds: 60 };

await writeSources(projectPages(), PICTURES, (text) => fillPlaceholders(text, demo));
process.env.DOCS_BASE = '/docs/';
const server = await createServer(DOCS);
await server.listen();
server.printUrls();
