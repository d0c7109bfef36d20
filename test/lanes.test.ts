import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { APART, CLIENTS, CONFORMANCE, EXAMPLES, LEFT_OUT, LONG, LONGEST, ONLY_IN_SOAK, QUICK, SLOW } from './lanes.ts';
import { ruleRows, WITHOUT_TEST } from './rule-table.ts';
import { PARTS } from './soak/parts.ts';
import { CONTRACT_RPCS } from './support/grpc.ts';
import { ROOT } from './tools/processes.ts';

const readText = (file: string) => readFileSync(join(ROOT, file), 'utf8');

/** Returns the text of a suite, and of the modules of `test/support` that it imports. */
function textWithSupport(suite: string): string {
  const text = readText(suite);
  const imported = [...text.matchAll(/from '[./]+\/(support\/[\w-]+\.ts)'/g)].map(([, file]) =>
    readText(`test/${file}`),
  );
  return [text, ...imported].join('\n');
}

const quick = QUICK.map(textWithSupport);

const NOT_QUICK = [...LEFT_OUT, ...CLIENTS, CONFORMANCE, ...EXAMPLES];

test('npm test proves every rule of the contract', async () => {
  const rows = await ruleRows();
  const unproven = rows.filter(
    ({ rule, tests }) => !(rule in WITHOUT_TEST) && !tests.some((file) => QUICK.includes(file)),
  );
  expect(unproven.map(({ rule }) => rule)).toEqual([]);
});

test('npm test calls every RPC', () => {
  const isCalled = (rpc: string) => {
    const [, method = ''] = rpc.split('/');
    const call = new RegExp(`\\.${method[0]?.toLowerCase()}${method.slice(1)}\\(|${rpc}'`);
    return quick.some((text) => call.test(text));
  };
  expect(CONTRACT_RPCS.filter((rpc) => !isCalled(rpc))).toEqual([]);
});

test('npm test runs every command', () => {
  const [table = ''] = readText('docs/reference/command-line.md').split(/^## /m);
  const commands = [...table.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, command = '']) => command),
  );
  const isRun = (command: string) => {
    const [group = '', name = ''] = command.split(' ');
    const words = name ? `'${group}', (?:'${name}'|\\.\\.\\.args[^]*'${name}')` : `'${group}'[,\\]]`;
    return quick.some((text) => /cli\.ts'|\bCLI\b/.test(text) && new RegExp(words).test(text));
  };
  expect(commands.length).toBeGreaterThan(30);
  expect(commands.filter((command) => !isRun(command))).toEqual([]);
});

test('each listed suite is left out of npm test, or is a slow one that it runs', () => {
  expect(Object.keys(LONG).filter((start) => !LEFT_OUT.some((suite) => suite.startsWith(start)))).toEqual([]);
  expect(LONGEST.filter((start) => !NOT_QUICK.some((suite) => suite.startsWith(start)))).toEqual([]);
  const apart = Object.values(APART).flatMap(({ suites }) => suites);
  expect(apart.filter((suite) => !LEFT_OUT.includes(suite))).toEqual([]);
  expect(SLOW.filter((name) => !QUICK.includes(`test/${name}.test.ts`))).toEqual([]);
});

test('npm run soak runs each suite that is left to it or sized for it, and names no others', () => {
  const starts = Object.values(PARTS).flat();
  const suites = [...QUICK, ...NOT_QUICK, ...Object.keys(ONLY_IN_SOAK)];
  expect(starts.filter((start) => !suites.some((suite) => suite.startsWith(start)))).toEqual([]);
  const sized = suites.filter((suite) => /\btestSize\(|\benv\.SOAK\b/.test(readText(suite)));
  expect(sized.length).toBeGreaterThan(10);
  expect(
    [...sized, ...Object.keys(ONLY_IN_SOAK)].filter((suite) => !starts.some((start) => suite.startsWith(start))),
  ).toEqual([]);
});
