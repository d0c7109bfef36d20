/** Generates the documentation from `pages/` and `problems/`. Argument: the output folder. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PAGES_FOLDER } from '../pages.ts';
import { layout } from './layout.ts';
import { referencePage } from './reference-page.ts';
import { indexForPrograms, renderPages } from './render-pages.ts';

const [, , folder = PAGES_FOLDER] = process.argv;
rmSync(folder, { recursive: true, force: true });
write('/index.html', referencePage());
write(
  '/search.html',
  layout({
    path: '/docs/search',
    title: 'Search',
    body: '<main class="page">\n<h1>Search: {{query}}</h1>\n{{results}}\n</main>',
  }),
);
write('/llms.txt', indexForPrograms());
for (const { path, html, markdown } of renderPages()) {
  const name = path.replace('/docs', '');
  write(`${name}.html`, html);
  write(`${name}.md`, markdown);
}

function write(name: string, text: string): void {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
