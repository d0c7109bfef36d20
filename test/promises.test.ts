import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PAGES, PROMISES, PROOFS } from './proofs.ts';
import { ROOT } from './tools/processes.ts';

/** Matches the start of a suite or a test that is neither skipped nor expected to fail. */
const RUNS = /^ *(?:describe|test|[a-zA-Z]*Contract|onEachDatabase)(?!.*\.(?:skip|todo|fails|only)\b)/;

describe.each(PAGES)('%s', (page) => {
  test('every row of the page has a unique id', () => {
    const ids = PROMISES.filter((row) => row.page === page).map(({ id }) => id);
    expect(ids.length).toBeGreaterThan(20);
    expect(readFileSync(join(ROOT, page), 'utf8').match(/^\| (?!Id |---)/gm)).toHaveLength(ids.length);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

test.each(PROMISES)('$id has a proof', ({ id }) => {
  const proofs = PROOFS.filter(({ ids }) => ids.includes(id));
  expect(proofs, `needs "// @proves ${id}" above the test that fails without it`).not.toEqual([]);
});

test('every proof names an existing row and is a test that runs', () => {
  const known = new Set(PROMISES.map(({ id }) => id));
  const unknown = PROOFS.flatMap(({ file, ids }) => ids.filter((id) => !known.has(id)).map((id) => `${file}: ${id}`));
  expect(unknown).toEqual([]);
  expect(PROOFS.filter(({ file, next }) => file.includes('test/') && !RUNS.test(next))).toEqual([]);
});
