/**
 * `npm run docs`: serves the pages of `/docs` and the project's own pages, with one menu and one search. Shows changes of the theme at
 * once. Restart it after a page changes.
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
