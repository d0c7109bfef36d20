import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { LEFT_OUT, LONG, QUICK, SLOW } from './lanes.ts';
import { ruleRows, WITHOUT_TEST } from './rule-table.ts';
import { CONTRACT_RPCS } from './support/grpc.ts';
import { ROOT } from './support/processes.ts';

const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');

/** The text of a suite, and of the modules of `test/support` that it imports. */
function textWithSupport(suite: string): string {
  const text = textOf(suite);
  const imported = [...text.matchAll(/from '[./]+\/(support\/[\w-]+\.ts)'/g)].map(([, file]) => textOf(`test/${file}`));
  return [text, ...imported].join('\n');
}

const quick = QUICK.map((suite) => ({ suite, text: textWithSupport(suite) }));

/** The suites that prove use cases which are no RPC of their name, by file; each imports the use case or runs its command. */
const PROVEN_BY: Readonly<Record<string, string>> = {
  'create-demo': 'test/e2e/start.test.ts',
  'erase-closed-leads': 'test/e2e/cli.test.ts',
  'find-leaked-keys': 'test/e2e/cli.test.ts',
  'keep-directory': 'test/e2e/cli.test.ts',
  'lead-change-poller': 'test/unit/lead-change-poller.test.ts',
  'manage-api-keys': 'test/e2e/http/api-keys.test.ts',
  'note-contact-fault': 'test/integration/request-rules.test.ts',
  'note-key-use': 'test/e2e/audit.test.ts',
};

test('npm test proves every rule of the contract', async () => {
  const rows = await ruleRows();
  const unproven = rows.filter(
    ({ rule, tests }) => !(rule in WITHOUT_TEST) && !tests.some((file) => QUICK.includes(file)),
  );
  expect(unproven.map(({ rule }) => rule)).toEqual([]);
});

test.each(CONTRACT_RPCS)('npm test calls %s', (rpc) => {
  const [, method = ''] = rpc.split('/');
  const call = new RegExp(`\\.${method[0]?.toLowerCase()}${method.slice(1)}\\(|${rpc}'`);
  expect(quick.filter(({ text }) => call.test(text)).length).toBeGreaterThan(0);
});

const useCases = globSync('src/usecases/*.ts', { cwd: ROOT })
  .map((file) => basename(file, '.ts'))
  .filter((name) => name !== 'dependencies');

test.each(useCases)('npm test proves the use case %s', (name) => {
  const method = name.replaceAll(/(?:^|-)(.)/g, (_, letter: string) => letter.toUpperCase());
  const isRpc = CONTRACT_RPCS.some((rpc) => rpc.endsWith(`/${method}`));
  expect({ name, isProven: isRpc || QUICK.includes(PROVEN_BY[name] ?? '') }).toEqual({ name, isProven: true });
  expect({ name, isListed: name in PROVEN_BY }).toEqual({ name, isListed: !isRpc });
});

test('the list of use cases names existing ones only', () => {
  expect(Object.keys(PROVEN_BY).filter((name) => !useCases.includes(name))).toEqual([]);
});

const [table = ''] = textOf('docs/reference/command-line.md').split(/^## /m);
const commands = [...table.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, cell = '']) =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, command = '']) => command),
);

test.each(commands)('npm test runs the command %s', (command) => {
  const [group = '', name = ''] = command.split(' ');
  const words = name ? `'${group}', (?:'${name}'|\\.\\.\\.args[^]*'${name}')` : `'${group}'[,\\]]`;
  const runs = quick.filter(({ text }) => /cli\.ts'|\bCLI\b/.test(text) && new RegExp(words).test(text));
  expect(runs.length).toBeGreaterThan(0);
});

test('each entry of the list of long suites leaves out some that would otherwise run', () => {
  expect(Object.keys(LONG).filter((start) => !LEFT_OUT.some((suite) => suite.startsWith(start)))).toEqual([]);
});

test('each entry of the list of slow suites leaves one out of npm run test:fast', () => {
  expect(SLOW.filter((name) => !QUICK.includes(`test/${name}.test.ts`))).toEqual([]);
});

test('no suite of npm test depends on what is installed', () => {
  const depends = /\b(?:hasCommand|missingTools|describe\.skip|describe\.runIf)\b/;
  const other = QUICK.filter((suite) => suite !== 'test/lanes.test.ts');
  expect(other.filter((suite) => depends.test(textOf(suite)))).toEqual([]);
});

test('no suite of npm test has less patience than a busy machine needs', () => {
  // Of a test, a hook or a wait; outside tests, only `vi.waitFor` can wait.
  const own =
    /^ *\}, [\d_]{4,}\);$|^ +[\d_]{5,},\n *\);|\b(?:timeout|testTimeout|hookTimeout): [\d_]+|\bvi\.wait(?:For|Until)\([^;]*/gm;
  const impatient = QUICK.flatMap((suite) =>
    [...textOf(suite).matchAll(own)]
      .filter(([text]) => !text.includes('timeout: 100_000'))
      .map(([text]) => `${suite}: ${text}`),
  );
  expect(impatient.filter((line) => !line.startsWith('test/lanes.test.ts'))).toEqual([]);
});
