import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { MARKDOWN_PAGES } from './support/markdown.ts';
import { ROOT } from './support/processes.ts';

const GUIDES = 'test/e2e/guides.test.ts';
const RECIPE = 'examples/recipes';

/**
 * The test that runs the commands of each block, by page and block. The test takes the commands from the page: its file names
 * the page and the block.
 */
const RUN_BY: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'README.md': { 'test/docs.test.ts': ['walkthrough'] },
  'docs/tutorial/walkthrough.md': { 'test/docs.test.ts': ['walkthrough'] },
  'docs/how-to/containers.md': { 'test/containers.test.ts': ['containers'] },
  'docs/how-to/deploy.md': {
    [GUIDES]: ['deploy-core', 'deploy-gateway', 'doctor', 'several-gateways', 'several-cores', 'verify'],
  },
  'docs/how-to/databases.md': { [GUIDES]: ['mongodb', 'sqlite', 'redis', 'redis-sentinel'] },
  'docs/how-to/callers.md': { [GUIDES]: ['callers', 'callers-core', 'callers-gateway', 'leaked-key'] },
  'docs/how-to/quotas.md': { [GUIDES]: ['quotas'] },
  'docs/how-to/backup.md': { [GUIDES]: ['backup', 'restore'] },
  'docs/how-to/erase.md': { [GUIDES]: ['erase'] },
  'docs/how-to/upgrade.md': { [GUIDES]: ['upgrade-copy'] },
  'docs/how-to/move-leads.md': { [GUIDES]: ['move-leads'] },
  'docs/how-to/keep-a-copy.md': { [GUIDES]: ['resend'] },
  'docs/how-to/generate-a-client.md': {
    'test/generated-clients/generated-clients.test.ts': [
      'openapi-generator-python',
      'openapi-generator-php',
      'openapi-generator-java',
      'openapi-generator-go',
      'openapi-python-client',
      'oapi-codegen',
    ],
  },
  'docs/reference/observability.md': { [GUIDES]: ['find-request', 'audit'] },
  'test/outbox/README.md': {
    [GUIDES]: [`OUTBOX_DATABASE='{"kind":"sqlite","file":"/tmp/website.db"}' \\`],
  },
  'proto/README.md': { 'test/proto-bundle.test.ts': ['protoc', 'grpcurl'] },
  'examples/README.md': {
    'test/examples/rest.test.ts': ['rest'],
    'test/examples/grpc.test.ts': [
      'bundle',
      'health-run',
      'typescript-copy',
      'python-copy',
      ...['typescript', 'python', 'go', 'java', 'rust', 'ruby'].flatMap((name) => [`${name}-get`, `${name}-run`]),
    ],
  },
  [`${RECIPE}/django/README.md`]: {
    'test/examples/django.test.ts': ['django-set-up', 'django-serve', 'django-work', 'django-deliver', 'django-report'],
  },
  [`${RECIPE}/nextjs/README.md`]: {
    'test/examples/nextjs.test.ts': ['nextjs-set-up', 'nextjs-website', 'nextjs-worker', 'nextjs-report'],
  },
  'docs/how-to/import-leads.md': {
    'test/e2e/import-files.test.ts': ['import-hubspot', 'import-salesforce', 'import-pipedrive', 'import-espocrm'],
  },
  [`${RECIPE}/php-form/README.md`]: {
    'test/examples/php-form.test.ts': [
      'php-form-set-up',
      'php-form-serve',
      'php-form-send',
      'php-form-report',
      'php-form-discard',
    ],
  },
  [`${RECIPE}/rails/README.md`]: {
    'test/examples/rails.test.ts': ['rails-set-up', 'rails-website', 'rails-worker', 'rails-report'],
  },
  [`${RECIPE}/wordpress/README.md`]: {
    'test/examples/wordpress.test.ts': ['wordpress-set-up', 'wordpress-serve', 'wordpress-cron'],
  },
};

/** Pages of `/docs` whose commands a test takes from the page as a gateway serves it, by the address there. */
const RUN_AS_SERVED: Readonly<Record<string, { readonly file: string; readonly address: string }>> = {
  'gateway/docs/pages/quick-start.md': { file: 'test/e2e/http/written-docs.test.ts', address: '/docs/quick-start' },
};

/** The blocks that no test runs, and why. */
const NOT_RUN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'README.md': {
    'npm ci && npm start   #': 'installs packages; .ci/run does, and test/e2e/start.test.ts runs npm start',
  },
  'CONTRIBUTING.md': {
    'npm ci': 'runs the tests themselves; .ci/run runs the same scripts',
    'npm run test:all -- test/world/world.test.ts': 'runs the tests themselves, for minutes',
  },
  'docs/how-to/databases.md': {
    ferretdb: 'needs a PostgreSQL with a standby: test/crash/failover.test.ts starts FerretDB with the same options',
  },
  'docs/how-to/upgrade.md': {
    restart: 'needs systemd: test/e2e/reused-port.test.ts restarts processes by the same signal',
  },
  'examples/README.md': {
    'export LEAD_INTAKE_URL=': 'sets variables for the reader; test/examples/rest.test.ts sets them itself',
  },
  'sdk/conformance/README.md': {
    'node sdk/conformance/run.ts --':
      'takes minutes: test/e2e/client-conformance.test.ts runs the suite with each client',
  },
  'test/simulation/README.md': {
    'npm run simulate ': 'for a minute: test/simulation/simulation.test.ts runs it with short plans',
  },
  'test/outbox/README.md': { 'npm run test:all -- test/outbox': 'runs the tests themselves' },
  [`${RECIPE}/laravel/README.md`]: { 'composer archive': 'no test has Laravel; examples/README.md says so' },
  [`${RECIPE}/symfony/README.md`]: { 'composer archive': 'no test has Symfony; examples/README.md says so' },
};

/** Sources in which a test names what it runs, besides its own file. */
const ALSO_IN: Readonly<Record<string, readonly string[]>> = {
  'test/examples/rest.test.ts': ['test/support/examples.ts'],
  'test/examples/grpc.test.ts': ['test/support/examples.ts'],
  'test/generated-clients/generated-clients.test.ts': ['test/generated-clients/clients.ts'],
};

/** A line that only sets variables, for the reader's shell, and runs no command for their values. */
const SETS_VARIABLES = /^(?:export )?(?:[A-Z_]+=(?:'[^']*'|"[^"`(]*"|[^\s'"$(]*)(?:\s+|$))+(?:#.*)?$/;

/** The first words of commands, as they would stand in a block that is not marked as one of a shell. */
const COMMAND = /^\s*(?:\$ |(?:npm|npx|node|curl|docker|git|php|composer|pip|python3?|lead-intake) )/m;

const blocks = MARKDOWN_PAGES.flatMap(({ path, blocks }) => blocks.map((block) => ({ path, ...block })));
const withCommands = blocks.filter(({ commands }) => !commands.split('\n').every((line) => SETS_VARIABLES.test(line)));

const runners = Object.entries(RUN_BY).flatMap(([path, tests]) =>
  Object.entries(tests).flatMap(([file, names]) => names.map((name) => ({ path, name, file }))),
);
const excused = Object.entries(NOT_RUN).flatMap(([path, reasons]) =>
  Object.keys(reasons).map((start) => ({ path, start })),
);

// @proves docs-1
test('every block of commands in every page is run by a test, or is on the list with a reason', () => {
  const unknown = withCommands.filter(
    ({ path, name }) =>
      !(path in RUN_AS_SERVED) &&
      !runners.some((each) => each.path === path && each.name === name) &&
      !excused.some((each) => each.path === path && name.startsWith(each.start)),
  );
  expect(unknown).toEqual([]);
  expect(withCommands.length).toBeGreaterThan(70);
});

test('a block that is not marked as one of a shell has no commands', () => {
  const texts = MARKDOWN_PAGES.flatMap(({ path }) => {
    const page = readFileSync(join(ROOT, path), 'utf8');
    const fenced = page.matchAll(/^ *(?:`{3,}|~{3,})(\w*)[^\n]*\n([\s\S]*?)^ *(?:`{3,}|~{3,}) *$/gm);
    return [...fenced].map(([, language = '', text = '']) => ({ path, language, text }));
  });
  expect(texts.length).toBeGreaterThan(withCommands.length);
  const unmarked = texts.filter(({ language }) => language === '' || language === 'text' || language === 'txt');
  expect(unmarked.filter(({ text }) => COMMAND.test(text))).toEqual([]);
});

test('the blocks that no test runs name only existing files', () => {
  const roots = readdirSync(ROOT);
  const missing = withCommands
    .filter(({ path, name }) => excused.some((each) => each.path === path && name.startsWith(each.start)))
    .flatMap(({ path, commands }) => commands.split(/[\s='"]+/).map((word) => ({ path, word })))
    .filter(({ word }) => word.includes('/') && roots.includes(word.split('/')[0] ?? ''))
    // Vitest also takes the beginning of a path.
    .filter(({ word }) => globSync(`${word}*`, { cwd: ROOT }).length === 0);
  expect(missing).toEqual([]);
});

test('the lists name existing blocks only', () => {
  const missing = [
    ...runners.filter((each) => !withCommands.some(({ path, name }) => each.path === path && each.name === name)),
    ...excused.filter(
      (each) => !withCommands.some(({ path, name }) => each.path === path && name.startsWith(each.start)),
    ),
  ];
  expect(missing).toEqual([]);
});

test.each(runners)('$file takes the commands $name from $path', ({ path, name, file }) => {
  const source = [file, ...(ALSO_IN[file] ?? [])].map((each) => readFileSync(join(ROOT, each), 'utf8')).join('\n');
  // A page below docs may be named relative to that folder.
  expect(source).toContain(path.replace(/^docs\/(?=how-to|reference)/, file === GUIDES ? '' : 'docs/'));
  expect(isNamedIn(source, name)).toBe(true);
});

test.each(Object.values(RUN_AS_SERVED))('$file takes the commands from $address', ({ file, address }) => {
  const source = readFileSync(join(ROOT, file), 'utf8');
  expect(source).toContain(`textOf('${address}')`);
  expect(source).toContain('language-sh');
});

/** Whether a source names a block as text, or by a template such as `${language}-get`. */
function isNamedIn(source: string, name: string): boolean {
  const quoted = (text: string) => ["'", '"', '`'].some((quote) => source.includes(`${quote}${text}${quote}`));
  const [language = '', ...rest] = name.split('-');
  const isTemplate = source.includes(`}-${rest.join('-')}\``) && (quoted(language) || source.includes(`${language}:`));
  return quoted(name) || quoted(name.replaceAll('\\', '\\\\')) || isTemplate || source.includes(`<!-- ${name} -->`);
}
