import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { MARKDOWN_PAGES } from './tools/markdown.ts';
import { ROOT } from './tools/processes.ts';

/** Why no test runs a block, by its page and the beginning of its name. */
const NOT_RUN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'README.md': {
    'npm ci && npm start   #': 'installs packages; .ci/run does, and test/e2e/start.test.ts runs npm start',
  },
  'CONTRIBUTING.md': {
    'npm ci': 'runs the tests themselves; .ci/run runs the same scripts',
  },
  'sdk/CONTRIBUTING.md': { 'npm ci': 'runs the tests themselves; .ci/run runs the same scripts' },
  'docs/how-to/databases.md': { ferretdb: 'needs a PostgreSQL with a standby: test/crash/failover.test.ts has one' },
  'docs/how-to/packages.md': { 'build-docs': 'test/build-docs.ts runs it before all tests, as npm start does' },
  'docs/how-to/releases.md': {
    'release-image': 'needs Docker and a registry: test/containers.test.ts builds the image',
  },
  'docs/how-to/upgrade.md': { restart: 'needs systemd: test/e2e/reused-port.test.ts restarts by the same signal' },
  'examples/README.md': { 'export LEAD_INTAKE_URL=': 'sets variables for the reader' },
  'sdk/conformance/README.md': {
    'node sdk/conformance/run.ts --': 'sdk/test/conformance.test.ts runs the suite with each client',
  },
  'test/simulation/README.md': { 'npm run simulate ': 'test/simulation/simulation.test.ts runs it with short plans' },
  'sdk/test/outbox/README.md': { 'npm run test:clients -- sdk/test/outbox': 'runs the tests themselves' },
};

/**
 * Pages of `/docs` whose commands test/e2e/http/written-docs.test.ts and sdk/test/packages-installed.test.ts read from a
 * gateway.
 */
const RUN_AS_SERVED = [
  'pages/docs',
  'pages/quick-start',
  'pages/clients',
  'pages/outbox',
  'pages/packages',
  'parts/install',
].map((name) => `gateway/docs/${name}.md`);

/** Matches a line that only sets variables in the reader's shell, and runs no command for their values. */
const SETS_VARIABLES = /^(?:export )?(?:[A-Z_]+=(?:'[^']*'|"[^"`(]*"|[^\s'"$(]*)(?:\s+|$))+(?:#.*)?$/;

const blocks = MARKDOWN_PAGES.flatMap(({ path, blocks }) => blocks.map((block) => ({ path, ...block })));
const withCommands = blocks.filter(({ commands }) => !commands.split('\n').every((line) => SETS_VARIABLES.test(line)));

const tests = globSync('{test,sdk/test,examples/test}/**/*.ts', {
  cwd: ROOT,
  exclude: ['test/documented-commands.test.ts'],
})
  .map((file) => readFileSync(join(ROOT, file), 'utf8'))
  .join('\n');

// @proves docs-1
test('every block of commands in a page is named by a test or listed with a reason', () => {
  const excuses = Object.entries(NOT_RUN).flatMap(([path, reasons]) =>
    Object.keys(reasons).map((start) => ({ path, start })),
  );
  const isExcused = ({ path, name }: (typeof blocks)[number]) =>
    excuses.some((each) => each.path === path && name.startsWith(each.start));
  expect(withCommands.length).toBeGreaterThan(70);
  expect(
    excuses.filter(
      ({ path, start }) => !withCommands.some((block) => block.path === path && block.name.startsWith(start)),
    ),
  ).toEqual([]);
  expect(
    withCommands.filter((block) => !RUN_AS_SERVED.includes(block.path) && !isExcused(block) && !isNamed(block.name)),
  ).toEqual([]);
});

/** Whether a test names a block in quotes, or by a template such as `${language}-get`. */
function isNamed(name: string): boolean {
  const quoted = (text: string) => ["'", '"', '`'].some((quote) => tests.includes(`${quote}${text}${quote}`));
  const [language = '', ...rest] = name.split('-');
  const isTemplate = tests.includes(`}-${rest.join('-')}\``) && (quoted(language) || tests.includes(`${language}:`));
  return quoted(name) || quoted(name.replaceAll('\\', '\\\\')) || isTemplate || tests.includes(`<!-- ${name} -->`);
}
