/**
 * Preload this into a process (`--import`): Node then loads the product with the bug that PLANTED_BUG names, or with the files
 * in the folder PLANTED_FILES instead of those at the same paths.
 */
import { existsSync, readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { patched } from './patch.ts';
import { ALL_BUGS } from './planted-bugs.ts';

const ROOT = join(import.meta.dirname, '../..');
const { PLANTED_BUG, PLANTED_FILES } = process.env;
const bug = ALL_BUGS.find(({ name }) => name === PLANTED_BUG);
if (PLANTED_BUG && !bug) throw new Error(`no planted bug has the name ${PLANTED_BUG}`);
const patches = bug?.patches ?? [];

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    const changed = PLANTED_FILES && url.startsWith('file:') && join(PLANTED_FILES, relative(ROOT, fileURLToPath(url)));
    if (changed && existsSync(changed)) return { ...loaded, source: readFileSync(changed, 'utf8') };
    const ofFile = patches.filter(({ file }) => url === pathToFileURL(join(ROOT, file)).href);
    return ofFile.length === 0 ? loaded : { ...loaded, source: ofFile.reduce(patched, String(loaded.source)) };
  },
});
