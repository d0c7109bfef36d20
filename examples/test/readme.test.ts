import { globSync } from 'node:fs';
import { expect, test } from 'vitest';
import { findCommands, readme } from '../../test/tools/commands.ts';
import { ROOT } from '../../test/tools/processes.ts';

const MARKS = [...readme.matchAll(/<!-- (\S+) -->/g)].map(([, mark = '']) => mark);

/** Sources that must be built, with the program that is run. */
const BUILT: Readonly<Record<string, string>> = {
  'examples/grpc/go/connect/main.go': 'examples/grpc/go/bin/connect',
  'examples/grpc/go/grpc/main.go': 'examples/grpc/go/bin/grpc',
  'examples/grpc/java/src/main/java/Leads.java': 'examples/grpc/java/target/leads.jar',
  'examples/grpc/rust/src/main.rs': '.generated/rust/debug/leads',
};

test('the README of the examples has the command of every program', () => {
  const sources = ['examples/rest/*', 'examples/grpc/{typescript,python,ruby}/*.{ts,py,rb}', ...Object.keys(BUILT)];
  const programs = globSync(sources, { cwd: ROOT });
  const commands = MARKS.map(findCommands).join('');
  const missing = programs.filter((program) => !commands.includes(BUILT[program] ?? program));
  expect(missing).toEqual([]);
  expect(programs.length).toBe(17);
});
