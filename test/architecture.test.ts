import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

/** What an adapter knows besides its database: the port, and what is decided and said the same way on both. */
const FOR_ADAPTERS = [
  'src/domain/',
  'src/runtime/deadlines.ts',
  'src/store/store.ts',
  'src/store/checked.ts',
  'src/store/pages.ts',
  'src/store/repetition.ts',
  'src/store/index-faults.ts',
  'src/store/region-after-put.ts',
];

/**
 * Which folder may import from which (a prefix of the path), besides itself. What is not listed is not allowed. A folder
 * that stands further down here knows those above it, never the other way round.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'src/domain/rules/': [],
  'src/domain/': ['src/domain/rules/'],
  'src/runtime/': [],
  'src/store/store.ts': ['src/domain/'],
  'src/store/checked.ts': ['src/domain/', 'src/store/store.ts'],
  'src/store/pages.ts': ['src/store/store.ts', 'src/store/checked.ts'],
  'src/store/repetition.ts': ['src/domain/', 'src/store/store.ts'],
  'src/store/index-faults.ts': ['src/store/store.ts'],
  'src/store/region-after-put.ts': ['src/domain/', 'src/store/store.ts'],
  'src/store/sqlite/': FOR_ADAPTERS,
  'src/store/mongo/': FOR_ADAPTERS,
  'src/store/open-store.ts': ['src/store/store.ts', 'src/store/sqlite/', 'src/store/mongo/'],
  'src/usecases/': ['src/domain/', 'src/store/store.ts'],
  'src/rpc/': ['proto/gen/', 'src/domain/', 'src/runtime/', 'src/usecases/', 'src/store/store.ts'],
  'src/': ['src/', 'proto/gen/'],
  // Looks at both processes' surroundings, with the settings of both.
  'src/doctor/': ['src/', 'proto/gen/', 'gateway/config.ts', 'gateway/core-connection.ts', 'gateway/quota/'],
  // The gateway knows the core by the generated contract; the two rules folders hold what both edges must agree on.
  'gateway/': ['proto/gen/', 'src/runtime/', 'src/domain/rules/'],
  'start.ts': [],
  'proto/gen/': [],
};

/** Packages that may be imported in one place only. */
const ONLY_IN: Readonly<Record<string, readonly string[]>> = {
  'node:sqlite': ['src/store/sqlite/'],
  mongodb: ['src/store/mongo/'],
  ioredis: ['gateway/quota/'],
  'libphonenumber-js': ['src/domain/contact.ts'],
  '@connectrpc/': [
    'src/rpc/',
    'src/server.ts',
    'src/check-health.ts',
    'src/doctor/',
    'gateway/core-client.ts',
    'gateway/core-connection.ts',
    'gateway/core-problems.ts',
    'gateway/core-sessions.ts',
  ],
  commander: ['src/cli.ts'],
  // Only ever loaded by name, when it is asked for.
  '@opentelemetry/': ['src/runtime/otlp-tracer.ts'],
  '@prometheus-io/client': ['src/runtime/', 'src/rpc/metrics.ts', 'gateway/metrics.ts'],
  marked: ['gateway/docs/'],
  '@scalar/': ['gateway/docs/'],
};

interface Import {
  readonly file: string;
  readonly imported: string;
}

const imports: readonly Import[] = globSync('{src,gateway,proto/gen}/**/*.ts', { cwd: ROOT })
  .concat('start.ts')
  .flatMap((file) =>
    [...readFileSync(join(ROOT, file), 'utf8').matchAll(/(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map(
      ([, specifier = '']) => ({
        file,
        imported: specifier.startsWith('.') ? normalize(join(dirname(file), specifier)) : specifier,
      }),
    ),
  );

describe('imports run one way', () => {
  test.each(Object.entries(MAY_IMPORT))('%s', (folder, allowed) => {
    const own = imports.filter(({ file }) => folderOf(file) === folder);
    const wrong = own
      .filter(({ imported }) => imported.includes('/') && /^(src|gateway|proto|start\.ts)/.test(imported))
      .filter(({ imported }) => ![folder, ...allowed].some((prefix) => imported.startsWith(prefix)));
    expect(wrong).toEqual([]);
  });

  test('every file belongs to a folder of the table, and imports were found', () => {
    expect(imports.filter(({ file }) => folderOf(file) === undefined)).toEqual([]);
    expect(imports.length).toBeGreaterThan(200);
  });
});

test.each(Object.entries(ONLY_IN))('%s is known in its own place only', (name, places) => {
  const users = imports.filter(
    ({ imported }) => imported === name || (name.endsWith('/') && imported.startsWith(name)),
  );
  const strangers = users
    .filter(({ file }) => !file.startsWith('proto/gen/'))
    .filter(({ file }) => !places.some((place) => file.startsWith(place)));
  expect(users.length).toBeGreaterThan(0);
  expect(strangers).toEqual([]);
});

test('what sends traces is loaded only when they are sent', () => {
  const users = imports.filter(({ imported }) => imported.endsWith('/otlp-tracer.ts'));
  expect(users.map(({ file }) => file)).toEqual(['src/runtime/tracing.ts']);
  expect(readFileSync(join(ROOT, 'src/runtime/tracing.ts'), 'utf8')).toContain("await import('./otlp-tracer.ts')");
});

function folderOf(file: string): string | undefined {
  return Object.keys(MAY_IMPORT)
    .filter((folder) => file.startsWith(folder))
    .toSorted((a, b) => b.length - a.length)[0];
}
