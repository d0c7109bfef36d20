import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from './support/processes.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** The pages whose rows have ids. */
const PAGES = ['docs/reference/promises.md', 'docs/reference/bounds.md', 'docs/explanation/lessons.md'];

const rows = PAGES.flatMap((page) =>
  [...read(page).matchAll(/^\| `([a-z\d]+-\d+)` \|/gm)].map(([, id = '']) => ({ page, id })),
);

/** Each comment with `@proves` and the line after it. The last two are scripts of `npm run check` and of CI. */
const proofs = [...globSync('{test,bench}/**/*.ts', { cwd: ROOT }), 'buf.yaml', '.ci/audit'].flatMap((file) =>
  [...read(file).matchAll(/^ *(?:\/\/|#| \*) @proves (.+)\n(.*)/gm)].map(([, ids = '', next = '']) => ({
    file,
    ids: ids.split(' '),
    next,
  })),
);

/** The start of a suite or of a test, which nothing skips or expects to fail. */
const RUNS = /^ *(?:describe|test|[a-zA-Z]*Contract|onEachDatabase|randomRuns)(?!.*\.(?:skip|todo|fails|only)\b)/;

describe.each(PAGES)('%s', (page) => {
  test('has an id of its own in every row', () => {
    const ids = rows.filter((row) => row.page === page).map(({ id }) => id);
    expect(ids.length).toBeGreaterThan(20);
    expect(read(page).match(/^\| (?!Id |---)/gm)).toHaveLength(ids.length);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

test.each(rows)('$id has a proof', ({ id }) => {
  expect(proofs.filter(({ ids }) => ids.includes(id))).not.toEqual([]);
});

test('every proof is of a row, and is a test that runs', () => {
  const known = new Set(rows.map(({ id }) => id));
  expect(proofs.flatMap(({ file, ids }) => ids.filter((id) => !known.has(id)).map((id) => `${file}: ${id}`))).toEqual(
    [],
  );
  expect(proofs.filter(({ file, next }) => file.startsWith('test/') && !RUNS.test(next))).toEqual([]);
});
