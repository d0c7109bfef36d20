/** Makes the pages of the documentation from what is written in `pages/` and `problems/`, into the folder that is named. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PAGES_FOLDER } from '../pages.ts';
import { referencePage } from './reference-page.ts';
import { renderPages } from './render-pages.ts';

const [, , folder = PAGES_FOLDER] = process.argv;
rmSync(folder, { recursive: true, force: true });
for (const { path, html } of [referencePage(), ...renderPages()]) {
  const file = join(folder, `${path.replace('/docs', '') || 'index'}.html`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, html);
}
