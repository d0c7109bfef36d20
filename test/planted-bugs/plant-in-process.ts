/**
 * Loaded before the product in a separate process (`--import`): Node loads the product with the planted bug that PLANTED_BUG
 * names.
 */
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PAST_FAULTS } from '../simulation/past-faults.ts';
import { patched } from './patch.ts';
import { ALL_BUGS } from './planted-bugs.ts';

const ROOT = join(import.meta.dirname, '../..');
const patches = [...ALL_BUGS, ...PAST_FAULTS].find(({ name }) => name === process.env.PLANTED_BUG)?.patches ?? [];

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    const ofFile = patches.filter(({ file }) => url === pathToFileURL(join(ROOT, file)).href);
    return ofFile.length === 0 ? loaded : { ...loaded, source: ofFile.reduce(patched, String(loaded.source)) };
  },
});
