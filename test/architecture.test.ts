import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

/** The imports that a store's adapter may have besides its driver: the port, and the parts that both adapters share. */
const ADAPTER_IMPORTS = [
  'common/deadlines.ts',
  'common/invariants.ts',
  'common/one-at-a-time.ts',
  'common/rules/',
  'common/throttle.ts',
  'src/domain/',
  'src/store/checked.ts',
  'src/store/database-state.ts',
  'src/store/decisions/',
  'src/store/earlier-release.ts',
  'src/store/pages.ts',
  'src/store/port/',
  'src/store/records.ts',
  'src/store/store.ts',
];

/** The imports that every layer of the gateway may have. */
const IN_EVERY_LAYER = [
  'common/',
  'proto/gen/',
  'gateway/admission/quota/quota-port.ts',
  'gateway/config.ts',
  'gateway/observation.ts',
  'gateway/problems.ts',
  'gateway/client-address.ts',
  'gateway/key-check.ts',
  'gateway/request.ts',
];

/**
 * The layers, and what each may import besides itself. A layer is a prefix of paths; the longest match applies. No layer imports
 * one further down.
 */
const ALLOWED_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  // The contract between the processes.
  'proto/gen/': [],
  // Shared by both processes, owned by neither.
  'common/rules/': [],
  'common/': ['common/rules/'],
  // The core.
  'src/domain/': ['common/invariants.ts', 'common/rules/', 'common/units.ts'],
  'src/store/port/': ['src/domain/'],
  'src/store/store.ts': ['src/store/port/'],
  'src/store/database-state.ts': [],
  'src/store/checked.ts': ['src/domain/', 'common/rules/', 'src/store/port/'],
  'src/store/records.ts': ['src/domain/', 'common/rules/', 'src/store/checked.ts', 'src/store/port/'],
  'src/store/pages.ts': ['common/invariants.ts', 'common/rules/', 'src/store/checked.ts', 'src/store/port/'],
  'src/store/earlier-release.ts': ['src/store/port/'],
  'src/store/decisions/': ['common/rules/', 'src/domain/', 'src/store/checked.ts', 'src/store/port/'],
  'src/store/sqlite/': ADAPTER_IMPORTS,
  'src/store/mongo/': ADAPTER_IMPORTS,
  // No other file imports the adapters.
  'src/store/open-store.ts': [
    'src/store/database-state.ts',
    'src/store/mongo/',
    'src/store/sqlite/',
    'src/store/port/',
    'src/store/store.ts',
  ],
  'src/usecases/': [
    'common/deadlines.ts',
    'common/in-time.ts',
    'common/invariants.ts',
    'common/one-at-a-time.ts',
    'common/rules/',
    'common/units.ts',
    'src/domain/',
    'src/store/port/',
    'src/store/store.ts',
  ],
  'src/callers-file.ts': ['common/rules/', 'common/strict-json.ts', 'src/domain/'],
  'src/rpc/': [
    'common/',
    'proto/gen/',
    'src/callers-file.ts',
    'src/domain/',
    'src/store/port/',
    'src/store/store.ts',
    'src/usecases/',
  ],
  'src/config.ts': ['common/', 'src/callers-file.ts', 'src/store/open-store.ts'],
  'src/port/': ['common/', 'src/config.ts', 'src/domain/', 'src/rpc/', 'src/usecases/'],
  'src/': [
    'common/',
    'proto/gen/',
    'src/callers-file.ts',
    'src/config.ts',
    'src/domain/',
    'src/port/',
    'src/rpc/',
    'src/store/open-store.ts',
    'src/usecases/',
  ],
  // The gateway shares only the contract with the core. Its docs import the schemas of requests and responses, but not their
  // handlers. A request goes from the port down to the core, and no layer knows the one above it.
  'gateway/problems.ts': ['common/rules/', 'proto/gen/'],
  'gateway/client-address.ts': ['common/'],
  'gateway/key-check.ts': ['common/', 'proto/gen/'],
  'gateway/request.ts': ['common/rules/', 'proto/gen/', 'gateway/key-check.ts', 'gateway/problems.ts'],
  'gateway/routes/schemas.ts': ['common/rules/', 'gateway/problems.ts'],
  'gateway/docs/': ['common/rules/', 'common/package-settings.ts', 'gateway/routes/schemas.ts', 'gateway/problems.ts'],
  'gateway/docs/generator/': [
    'common/build-if-outdated.ts',
    'common/package-settings.ts',
    'gateway/docs/',
    'gateway/problems.ts',
  ],
  'gateway/admission/quota/': ['common/'],
  'gateway/config.ts': ['common/', 'gateway/admission/quota/', 'gateway/client-address.ts'],
  'gateway/observation.ts': [
    'common/',
    'gateway/client-address.ts',
    'gateway/admission/quota/quota-port.ts',
    'gateway/key-check.ts',
    'gateway/problems.ts',
    'gateway/request.ts',
  ],
  'gateway/core/': IN_EVERY_LAYER,
  'gateway/routes/': ['gateway/core/', 'gateway/docs/', 'gateway/routes/schemas.ts', ...IN_EVERY_LAYER],
  'gateway/admission/': ['gateway/admission/quota/', 'gateway/core/', ...IN_EVERY_LAYER],
  'gateway/port/': ['gateway/admission/', 'gateway/routes/', ...IN_EVERY_LAYER],
  'gateway/': [
    'gateway/admission/',
    'gateway/core/',
    'gateway/docs/',
    'gateway/routes/',
    'gateway/port/',
    ...IN_EVERY_LAYER,
  ],
  // A separate process, which knows the core only by the contract.
  'relay/': ['common/', 'proto/gen/'],
  // Above all processes; none imports them.
  'verify/': ['common/', 'gateway/problems.ts'],
  'operator/doctor/': [
    'common/',
    'gateway/config.ts',
    'gateway/admission/quota/open-quota.ts',
    'gateway/admission/quota/redis-client.ts',
    'proto/gen/',
    'relay/config.ts',
    'src/config.ts',
    'src/store/database-state.ts',
    'src/store/earlier-release.ts',
    'src/store/open-store.ts',
    'src/store/port/',
    'src/store/store.ts',
    'src/usecases/every-record.ts',
  ],
  'operator/': [
    'common/',
    'verify/',
    'operator/doctor/',
    'src/callers-file.ts',
    'src/config.ts',
    'src/domain/',
    'src/store/open-store.ts',
    'src/store/port/',
    'src/store/store.ts',
    'src/usecases/',
  ],
  'start.ts': ['common/stop-request.ts'],
  'ops/': [],
  // Clients, measurements and tests.
  'sdk/generate-api-types.ts': ['gateway/docs/openapi.ts'],
  'sdk/generate-outcomes.ts': ['gateway/problems.ts'],
  'sdk/generate-rules.ts': ['common/rules/field-rules.ts'],
  'sdk/': [],
  // Builds the packages that a gateway serves, which finds them by the shared settings.
  'sdk/wordpress/': ['common/package-settings.ts'],
  'sdk/packages/': ['sdk/wordpress/', 'common/build-if-outdated.ts', 'common/package-settings.ts'],
  'sdk/outbox/': [
    'sdk/as-written.ts',
    'sdk/capture-rules.ts',
    'sdk/client.ts',
    'sdk/api-types.ts',
    'sdk/errors.ts',
    'sdk/not-sent.ts',
    'sdk/outcomes.ts',
    'sdk/repeated.ts',
  ],
  'sdk/conformance/': [],
  'sdk/conformance/drivers/': ['sdk/index.ts'],
  'examples/': [],
  // Tools of tests, which do not depend on the product.
  'test/tools/': [],
  'bench/': ['common/', 'gateway/', 'src/', 'test/support/'],
  'test/': [
    'bench/',
    'common/',
    'verify/',
    'gateway/',
    'operator/',
    'proto/gen/',
    'relay/',
    'sdk/',
    'src/',
    'test/tools/',
  ],
  // The clients depend on the OpenAPI document, a running service, and the settings of the packages, which a gateway reads.
  'sdk/test/': ['sdk/', 'common/package-settings.ts', 'test/tools/'],
  // The examples of the core's contract are tested with a core.
  'examples/test/': ['proto/gen/', 'sdk/', 'test/crash/deployment.ts', 'test/support/', 'test/tools/'],
};

/** Packages that may be imported in one layer only. */
const ONLY_IN: Readonly<Record<string, readonly string[]>> = {
  'node:sqlite': ['src/store/sqlite/'],
  mongodb: ['src/store/mongo/'],
  ioredis: ['gateway/admission/quota/'],
  'libphonenumber-js': ['src/domain/contact.ts', 'src/domain/phone-number'],
  '@connectrpc/': [
    'common/core-connection.ts',
    'common/envelopes.ts',
    'relay/core.ts',
    'src/rpc/',
    'operator/doctor/',
    'gateway/core/core-client.ts',
    'gateway/core/core-problems.ts',
    'gateway/core/exchange-calls.ts',
  ],
  commander: ['operator/commands/'],
  'csv-stringify/sync': ['operator/csv-export.ts'],
  table: ['operator/table-text.ts'],
  // Loaded dynamically, with traces enabled.
  '@opentelemetry/': ['common/otlp-tracer.ts'],
  '@prometheus-io/client': ['common/metrics.ts', 'relay/observation.ts'],
  standardwebhooks: ['relay/message.ts'],
  '@fastify/static': ['gateway/routes/docs.ts'],
  // A gateway does not load it, because the build of the docs copies the script.
  '@scalar/': ['gateway/docs/generator/'],
};

/** The production code; tests and tools may import any package. */
const PRODUCTION = /^(?:common|src|gateway|relay|operator|verify|start\.ts)/;

interface Import {
  readonly file: string;
  readonly imported: string;
}

const FILES = globSync('**/*.{ts,js,mjs}', {
  cwd: ROOT,
  exclude: (name) => name === 'node_modules' || name.startsWith('.'),
}).filter((file) => !/^(?:sdk\/dist|gateway\/docs\/site|examples\/.*\/(?:gen|types))\//.test(file));

/** All imports, including those of types. */
const imports: readonly Import[] = FILES.flatMap((file) =>
  [...readFileSync(join(ROOT, file), 'utf8').matchAll(/(?:from|import)\s*\(?\s*['"]([^'"\n]+)['"]/g)].map(
    ([, specifier = '']) => ({
      file,
      imported: specifier.startsWith('.') ? normalize(join(dirname(file), specifier)) : specifier,
    }),
  ),
);

const files = new Set(FILES);
const internalImports = imports.filter(({ imported }) => files.has(imported));

describe('imports run one way', () => {
  test.each(Object.entries(ALLOWED_IMPORTS))('%s imports only allowed layers', (layer, allowed) => {
    const wrong = internalImports
      .filter(({ file, imported }) => findLayer(file) === layer && findLayer(imported) !== layer)
      .filter(({ imported }) => !allowed.some((prefix) => imported.startsWith(prefix)));
    expect(wrong).toEqual([]);
  });

  // @proves others-7
  test('every file has a row in ALLOWED_IMPORTS, and every row has files', () => {
    expect(FILES.filter((file) => findLayer(file) === undefined)).toEqual([]);
    expect(Object.keys(ALLOWED_IMPORTS).filter((layer) => !FILES.some((file) => findLayer(file) === layer))).toEqual(
      [],
    );
    expect(internalImports.length).toBeGreaterThan(1000);
  });

  test('no file outside bench imports one from a row further down', () => {
    const layers = Object.keys(ALLOWED_IMPORTS);
    const upwards = internalImports.filter(
      ({ file, imported }) => layers.indexOf(findLayer(file) ?? '') < layers.indexOf(findLayer(imported) ?? ''),
    );
    expect(upwards.filter(({ file }) => !file.startsWith('bench/'))).toEqual([]);
  });

  test('there is no import cycle', () => {
    expect(findCycles()).toEqual([]);
  });
});

test.each(Object.entries(ONLY_IN))('%s is imported in its own layer only', (name, places) => {
  const users = imports
    .filter(({ imported }) => imported === name || (name.endsWith('/') && imported.startsWith(name)))
    .filter(({ file }) => PRODUCTION.test(file));
  expect(users.length).toBeGreaterThan(0);
  expect(users.filter(({ file }) => !places.some((place) => file.startsWith(place)))).toEqual([]);
});

test.each(['src/check-health.ts', 'gateway/check-health.ts'])('%s, which runs often, loads only common', (file) => {
  const reached = reachedFrom(file);
  expect([...reached].filter((each) => each !== file && !each.startsWith('common/'))).toEqual([]);
  const packages = imports.filter((each) => reached.has(each.file) && !files.has(each.imported));
  expect(packages.filter(({ imported }) => !imported.startsWith('node:'))).toEqual([]);
});

// Node runs the sources unchanged, and the oldest Node that package.json allows does not know `using`.
test('no file of the product has a declaration that the oldest Node cannot parse', () => {
  const product = FILES.filter((file) => PRODUCTION.test(file));
  const declares = (file: string) => /^ *(?:await )?using \w+ =/m.test(readFileSync(join(ROOT, file), 'utf8'));
  expect(product.filter(declares)).toEqual([]);
});

test('the trace exporter is loaded only with traces enabled', () => {
  const users = imports.filter(({ file, imported }) => PRODUCTION.test(file) && imported.endsWith('/otlp-tracer.ts'));
  expect(users.map(({ file }) => file)).toEqual(['common/open-tracer.ts']);
  expect(readFileSync(join(ROOT, 'common/open-tracer.ts'), 'utf8')).toContain("await import('./otlp-tracer.ts')");
});

/** The files that Git tracks here. The command fails without Git or outside a checkout. */
const tracked = spawnSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' });

test.skipIf(tracked.status !== 0)('the top level has only what architecture.md names', () => {
  const [, section = ''] = readFileSync(join(ROOT, 'docs/explanation/architecture.md'), 'utf8').split(/^## /m);
  const named = new Set(section.match(/[\w.-]+/g));
  const files = tracked.stdout.split('\0');
  const top = [...new Set(files.filter((file) => file !== '').map((file) => file.split('/')[0] ?? ''))];
  expect(top.length).toBeGreaterThan(20);
  expect(top.filter((name) => !named.has(name))).toEqual([]);
});

function findLayer(file: string): string | undefined {
  return Object.keys(ALLOWED_IMPORTS)
    .filter((layer) => file.startsWith(layer))
    .toSorted((a, b) => b.length - a.length)[0];
}

/** Returns a file with everything that it imports, directly or not. */
function reachedFrom(file: string, reached = new Set<string>()): ReadonlySet<string> {
  if (reached.has(file)) return reached;
  reached.add(file);
  for (const each of internalImports.filter((found) => found.file === file)) reachedFrom(each.imported, reached);
  return reached;
}

/** Returns the import cycles, one for each file that closes one. */
function findCycles(): string[] {
  const importsByFile = Map.groupBy(internalImports, ({ file }) => file);
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) found.push([...path.slice(path.indexOf(file)), file].join(' → '));
    if (done.has(file)) return;
    done.add(file);
    for (const { imported } of importsByFile.get(file) ?? []) visit(imported, [...path, file]);
  };
  for (const file of FILES) visit(file, []);
  return found;
}
