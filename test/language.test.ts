import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

/** Words of which others are clearer, and those others. `docs/reference/glossary.md` has the terms. */
const REPLACEMENTS: Readonly<Record<string, string>> = {
  anew: 'again',
  nobody: 'no caller, no client, no one',
  strangers: 'unauthenticated clients',
  tells: 'reports, returns, logs',
  told: 'reported, returned, logged',
  whoever: 'a caller that, a client that',
};

const EXCLUDED: readonly RegExp[] = [
  // Released: stored in databases, comments included.
  /^test\/upgrade\//,
  // History.
  /^CHANGELOG\.md$/,
  /^test\/language\.test\.ts$/,
];

/** As in `.gitignore`. */
const GENERATED = [
  '**/{node_modules,vendor}/**',
  'sdk/dist/**',
  'examples/grpc/*/{gen,types,.venv,buf,leadintake,target}/**',
  'examples/recipes/wordpress/build/**',
];

const FILES = globSync(
  [
    '*.{ts,md,yaml,json}',
    '{bench,common,conformance,docs,examples,gateway,operator,ops,proto,sdk,src,test}/**/*.{ts,tsx,js,mjs,md,yaml,proto,py,php,go,java,rb,rs,json}',
  ],
  { cwd: ROOT, exclude: GENERATED },
).filter((file) => !EXCLUDED.some((excluded) => excluded.test(file)));

test.each(Object.entries(REPLACEMENTS))('no file says "%s", but: %s', (word) => {
  const lines = FILES.flatMap((file) =>
    readFileSync(join(ROOT, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => (new RegExp(`\\b${word}\\b`, 'i').test(line) ? [`${file}:${index + 1}`] : [])),
  );
  expect(FILES).toContain('src/main.ts');
  expect(lines).toEqual([]);
});
