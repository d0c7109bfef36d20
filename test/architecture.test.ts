import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

/** What a store's adapter knows besides its database: the port, and what is decided and said the same way on both. */
const FOR_ADAPTERS = [
  'common/deadlines.ts',
  'common/coalesced-reads.ts',
  'src/domain/',
  'src/store/checked.ts',
  'src/store/conversion.ts',
  'src/store/database-state.ts',
  'src/store/index-faults.ts',
  'src/store/pages.ts',
  'src/store/region-after-put.ts',
  'src/store/replay-outcome.ts',
  'src/store/store.ts',
  'src/store/read-past-unreadable.ts',
];

/**
 * The rooms, and which others each may know, besides itself: prefixes of paths, the longest that fits counts. What is not
 * listed is not allowed. Nobody knows who stands further down.
 */
const MAY_KNOW: Readonly<Record<string, readonly string[]>> = {
  // The contract between the processes.
  'proto/gen/': [],
  // What both processes share and neither owns.
  'common/rules/': [],
  'common/': ['common/rules/'],
  // The core.
  'src/domain/': ['common/rules/', 'common/units.ts'],
  'src/store/store.ts': ['src/domain/'],
  'src/store/conversion.ts': [],
  'src/store/database-state.ts': [],
  'src/store/checked.ts': ['src/domain/', 'common/rules/', 'src/store/store.ts'],
  'src/store/index-faults.ts': ['src/store/store.ts'],
  'src/store/pages.ts': ['src/store/checked.ts', 'src/store/store.ts'],
  'src/store/region-after-put.ts': ['src/domain/', 'src/store/checked.ts', 'src/store/store.ts'],
  'src/store/replay-outcome.ts': ['src/domain/', 'src/store/store.ts'],
  'src/store/read-past-unreadable.ts': [],
  'src/store/sqlite/': FOR_ADAPTERS,
  'src/store/mongo/': FOR_ADAPTERS,
  // Nobody else knows the adapters.
  'src/store/open-store.ts': [
    'src/store/conversion.ts',
    'src/store/database-state.ts',
    'src/store/mongo/',
    'src/store/sqlite/',
    'src/store/store.ts',
  ],
  'src/usecases/': [
    'common/rules/',
    'common/coalesced-reads.ts',
    'common/units.ts',
    'src/domain/',
    'src/store/store.ts',
  ],
  'src/callers-file.ts': ['common/rules/', 'src/domain/'],
  'src/rpc/': ['common/', 'proto/gen/', 'src/callers-file.ts', 'src/domain/', 'src/store/store.ts', 'src/usecases/'],
  'src/http2/': ['common/', 'src/rpc/'],
  'src/': [
    'common/',
    'proto/gen/',
    'src/callers-file.ts',
    'src/domain/',
    'src/http2/',
    'src/rpc/',
    'src/store/conversion.ts',
    'src/store/open-store.ts',
    'src/usecases/',
  ],
  // The gateway knows the core by the contract alone. Its docs know what requests and answers look like, and nothing of how
  // they are served.
  'gateway/lead-paths.ts': [],
  'gateway/problems.ts': ['proto/gen/'],
  'gateway/schemas.ts': ['common/rules/', 'gateway/problems.ts'],
  'gateway/docs/': ['common/rules/', 'gateway/lead-paths.ts', 'gateway/problems.ts', 'gateway/schemas.ts'],
  'gateway/docs/build/': ['gateway/docs/', 'gateway/problems.ts'],
  'gateway/': [
    'common/',
    'proto/gen/',
    'gateway/docs/openapi.ts',
    'gateway/docs/pages.ts',
    'gateway/docs/reference-script.ts',
    'gateway/lead-paths.ts',
    'gateway/problems.ts',
    'gateway/schemas.ts',
  ],
  // Above both processes; nobody knows them.
  'conformance/': ['common/'],
  'operator/doctor/': [
    'common/',
    'gateway/config.ts',
    'gateway/core-connection.ts',
    'gateway/core-token.ts',
    'gateway/quota/redis-client.ts',
    'proto/gen/',
    'src/config.ts',
    'src/store/database-state.ts',
    'src/store/open-store.ts',
  ],
  'operator/': [
    'common/',
    'conformance/',
    'operator/doctor/',
    'src/callers-file.ts',
    'src/config.ts',
    'src/domain/',
    'src/store/conversion.ts',
    'src/store/open-store.ts',
    'src/store/store.ts',
    'src/usecases/',
  ],
  'start.ts': [],
  // Who uses the service, or tries it.
  'sdk/generate-contract.ts': ['gateway/docs/openapi.ts'],
  'sdk/': [],
  'sdk/outbox/': ['sdk/client.ts', 'sdk/contract.ts', 'sdk/errors.ts'],
  'sdk/conformance/': [],
  'sdk/conformance/drivers/': ['sdk/index.ts'],
  'examples/': [],
  'bench/': ['proto/gen/', 'src/', 'test/support/'],
  'test/': ['bench/', 'common/', 'conformance/', 'gateway/', 'operator/', 'proto/gen/', 'sdk/', 'src/'],
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
    'operator/doctor/',
    'gateway/core-client.ts',
    'gateway/core-connection.ts',
    'gateway/core-problems.ts',
    'gateway/core-sessions.ts',
  ],
  commander: ['operator/cli.ts'],
  'csv-stringify/sync': ['operator/csv.ts'],
  // Only ever loaded by name, when it is asked for.
  '@opentelemetry/': ['common/otlp-tracer.ts'],
  '@prometheus-io/client': ['common/metrics.ts', 'src/rpc/metrics.ts', 'gateway/metrics.ts'],
  '@fastify/static': ['gateway/routes/docs.ts'],
  // Nothing of them runs in a gateway: the pages are made before, and `npm ci` takes out the script.
  marked: ['gateway/docs/build/'],
  '@scalar/': ['gateway/docs/build/'],
};

/** Where what is served stands; others may try it with whatever they like. */
const SERVED = /^(?:common|src|gateway|operator|conformance|start\.ts)/;

interface Import {
  readonly file: string;
  readonly imported: string;
}

const FILES = globSync('**/*.{ts,js,mjs}', {
  cwd: ROOT,
  exclude: (name) => name === 'node_modules' || name.startsWith('.'),
}).filter((file) => !/^(?:sdk\/dist|examples\/.*\/(?:gen|types))\//.test(file));

/** Of types too: what a file must know to be read counts as much as what it needs to run. */
const imports: readonly Import[] = FILES.flatMap((file) =>
  [...readFileSync(join(ROOT, file), 'utf8').matchAll(/(?:from|import)\s*\(?\s*['"]([^'"\n]+)['"]/g)].map(
    ([, specifier = '']) => ({
      file,
      imported: specifier.startsWith('.') ? normalize(join(dirname(file), specifier)) : specifier,
    }),
  ),
);

const files = new Set(FILES);
const amongFiles = imports.filter(({ imported }) => files.has(imported));

describe('imports run one way', () => {
  test.each(Object.entries(MAY_KNOW))('%s', (room, known) => {
    const wrong = amongFiles
      .filter(({ file, imported }) => roomOf(file) === room && roomOf(imported) !== room)
      .filter(({ imported }) => !known.some((prefix) => imported.startsWith(prefix)));
    expect(wrong).toEqual([]);
  });

  test('every file stands in a row of the table, and no row is for nobody', () => {
    expect(FILES.filter((file) => roomOf(file) === undefined)).toEqual([]);
    expect(Object.keys(MAY_KNOW).filter((room) => !FILES.some((file) => roomOf(file) === room))).toEqual([]);
    expect(amongFiles.length).toBeGreaterThan(1000);
  });

  test('nobody knows who stands further down in the table, but who only tries things', () => {
    const rooms = Object.keys(MAY_KNOW);
    const upwards = amongFiles.filter(
      ({ file, imported }) => rooms.indexOf(roomOf(file) ?? '') < rooms.indexOf(roomOf(imported) ?? ''),
    );
    expect(upwards.filter(({ file }) => !file.startsWith('bench/'))).toEqual([]);
  });

  test('no file knows itself by way of others', () => {
    expect(circles()).toEqual([]);
  });
});

test.each(Object.entries(ONLY_IN))('%s is known in its own place only', (name, places) => {
  const users = imports
    .filter(({ imported }) => imported === name || (name.endsWith('/') && imported.startsWith(name)))
    .filter(({ file }) => SERVED.test(file));
  expect(users.length).toBeGreaterThan(0);
  expect(users.filter(({ file }) => !places.some((place) => file.startsWith(place)))).toEqual([]);
});

test('what sends traces is loaded only when they are sent', () => {
  const users = imports.filter(({ file, imported }) => SERVED.test(file) && imported.endsWith('/otlp-tracer.ts'));
  expect(users.map(({ file }) => file)).toEqual(['common/open-tracer.ts']);
  expect(readFileSync(join(ROOT, 'common/open-tracer.ts'), 'utf8')).toContain("await import('./otlp-tracer.ts')");
});

test('a name that a file offers to others means one thing', () => {
  // What the two adapters call alike does the same on either database. The conformance kit and the SDK speak as callers do.
  const named = FILES.filter((file) => /^(?:common|src|gateway|operator)\//.test(file)).flatMap((file) =>
    [
      ...readFileSync(join(ROOT, file), 'utf8').matchAll(
        /^export (?:async )?(?:interface|type|const|function|class) (\w+)/gm,
      ),
    ].map(([, name = '']) => ({ name, place: file.replace(/^src\/store\/(?:mongo|sqlite)\/.*/, 'an adapter') })),
  );
  const places = Map.groupBy(named, ({ name }) => name);
  const twice = [...places].filter(([, of]) => new Set(of.map(({ place }) => place)).size > 1);
  expect(twice.map(([name, of]) => ({ name, of: of.map(({ place }) => place) }))).toEqual([]);
  expect(places.size).toBeGreaterThan(200);
});

function roomOf(file: string): string | undefined {
  return Object.keys(MAY_KNOW)
    .filter((room) => file.startsWith(room))
    .toSorted((a, b) => b.length - a.length)[0];
}

/** The ways by which a file comes back to itself, one for each file where such a way was closed. */
function circles(): string[] {
  const known = Map.groupBy(amongFiles, ({ file }) => file);
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]): void => {
    if (way.includes(file)) found.push([...way.slice(way.indexOf(file)), file].join(' → '));
    if (done.has(file)) return;
    done.add(file);
    for (const { imported } of known.get(file) ?? []) visit(imported, [...way, file]);
  };
  for (const file of FILES) visit(file, []);
  return found;
}
