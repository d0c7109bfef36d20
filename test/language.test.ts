import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

/** Words of which others are clearer in code and messages, and those others. `docs/reference/glossary.md` has the terms. */
const REPLACEMENTS: Readonly<Record<string, string>> = {
  anew: 'again',
  nobody: 'no caller, no client, no one',
  tells: 'reports, returns, logs',
  told: 'reported, returned, logged',
  whoever: 'a caller that, a client that',
};

const FILES = globSync('{src,common,gateway,operator,conformance,bench,ops}/**/*.{ts,yaml}', { cwd: ROOT }).concat(
  'start.ts',
);

/** Its steps stand in databases, comments included. */
const STORED = 'src/store/sqlite/migrations.ts';

test.each(Object.entries(REPLACEMENTS))('the product says "%s" nowhere, but: %s', (word) => {
  const lines = FILES.filter((file) => file !== STORED).flatMap((file) =>
    readFileSync(join(ROOT, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => (new RegExp(`\\b${word}\\b`, 'i').test(line) ? [`${file}:${index + 1}`] : [])),
  );
  expect(FILES.length).toBeGreaterThan(300);
  expect(lines).toEqual([]);
});
