import { globSync } from 'node:fs';
import { expect, test } from 'vitest';
import { commandsOf, readme } from '../support/examples.ts';
import { ROOT } from '../support/processes.ts';

const MARKS = [...readme.matchAll(/<!-- (\S+) -->/g)].map(([, mark = '']) => mark);

/** What is not run as a file: the whole folder is built, and what is built is run. */
const BUILT: Readonly<Record<string, string>> = {
  'examples/grpc/go/connect/main.go': 'examples/grpc/go/bin/connect',
  'examples/grpc/go/grpc/main.go': 'examples/grpc/go/bin/grpc',
  'examples/grpc/java/src/main/java/Leads.java': 'examples/grpc/java/target/leads.jar',
  'examples/grpc/rust/src/main.rs': '.generated/rust/debug/leads',
};

test('every example stands in the README, among the commands that the tests run', () => {
  const programs = globSync(
    ['examples/rest/*', 'examples/grpc/{typescript,python,ruby}/*.{ts,py,rb}', ...Object.keys(BUILT)],
    {
      cwd: ROOT,
    },
  );
  const commands = MARKS.map(commandsOf).join('');
  const missing = programs.filter((program) => !commands.includes(BUILT[program] ?? program));
  expect(missing).toEqual([]);
  expect(programs.length).toBe(15);
});

test('every command of the README is run by a test, besides those that only set variables', () => {
  const blocks = [...readme.matchAll(/(.*)\n```sh\n([\s\S]*?)```/g)];
  const unmarked = blocks.filter(([, before = '']) => !before.startsWith('<!-- '));
  for (const [, , commands = ''] of unmarked) {
    for (const line of commands.trim().split('\n')) expect(line).toMatch(/^(export )?[A-Z_]+=/);
  }
  expect(MARKS.toSorted()).toEqual(
    [
      'rest',
      'bundle',
      'health-run',
      'typescript-copy',
      'python-copy',
      ...['typescript', 'python', 'go', 'java', 'rust', 'ruby'].flatMap((name) => [`${name}-get`, `${name}-run`]),
    ].toSorted(),
  );
});
