import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** The pages whose rows have ids, and so need proofs. */
export const PAGES = ['docs/reference/promises.md', 'docs/reference/bounds.md', 'docs/explanation/lessons.md'];

export const PROMISES = PAGES.flatMap((page) =>
  [...read(page).matchAll(/^\| `([a-z\d]+-\d+)` \|/gm)].map(([, id = '']) => ({ page, id })),
);

/** Each comment with `@proves`, and the line after it. The last two files belong to `npm run check` and to CI. */
export const PROOFS = [
  ...globSync('{test,sdk/test,examples/test,bench}/**/*.ts', { cwd: ROOT }),
  'buf.yaml',
  '.ci/audit',
].flatMap((file) =>
  [...read(file).matchAll(/^ *(?:\/\/|#| \*) @proves (.+)\n(.*)/gm)].map(([, ids = '', next = '']) => ({
    file,
    ids: ids.split(' '),
    next,
  })),
);
