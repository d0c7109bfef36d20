import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'vitest';
import { ROOT, type RunningProcess, watch } from './processes.ts';

/** The README of the examples, with the commands that run them. */
export const readme = readFileSync(join(ROOT, 'examples/README.md'), 'utf8');

/** Returns the commands of a page below a marker comment. */
export function commandsIn(page: string, mark: string): string {
  const [, commands] = new RegExp(`<!-- ${mark} -->\n\`\`\`sh\n([\\s\\S]*?)\`\`\``).exec(page) ?? [];
  if (commands === undefined) throw new Error(`no commands are marked ${mark}`);
  return commands;
}

/** Returns the commands of the examples' README below a marker comment. */
export const findCommands = (mark: string): string => commandsIn(readme, mark);

/** Returns the program of a page below a marker comment. */
export function findExample(page: string, mark: string): string {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const [, program] = new RegExp(`<!-- ${mark} -->\\n\`\`\`\\w+\\n([\\s\\S]*?)\`\`\``).exec(text) ?? [];
  if (program === undefined) throw new Error(`${page} has no program marked ${mark}`);
  return program;
}

/** Returns the commands of a list that fail on this machine. */
export const missingTools = (tools: readonly string[]): readonly string[] =>
  tools.filter((tool) => spawnSync('bash', ['-c', tool], { cwd: ROOT }).status !== 0);

/**
 * Defines a suite that runs an example, with concurrent tests, because they mostly wait. Skips it with a warning if tools
 * are missing, even in CI, because no machine has the tools of every language.
 */
export function describeWithTools(tools: readonly string[], name: string, body: () => void): void {
  const missing = missingTools(['bash --version', ...tools]);
  if (missing.length === 0) {
    describe.concurrent(name, body);
  } else {
    console.warn(`NOT RUN: ${name}. These must succeed here: ${missing.join(', ')}.`);
    describe.skip(name, body);
  }
}

/** Starts commands in the project folder that run until they are killed. Bash becomes the last of them, which is returned. */
export function startCommands(commands: string, env: Readonly<Record<string, string>>): ChildProcess {
  return spawn('bash', ['-ec', commands], { cwd: ROOT, env: { ...process.env, ...env }, stdio: 'ignore' });
}

/** Starts commands with an input. `kill` also ends the processes that they started, such as those of npx. */
export function watchCommands(commands: string, env: Readonly<Record<string, string>>, input = ''): RunningProcess {
  const child = spawn('bash', ['-ec', commands], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  child.stdin.end(input);
  const running = watch(child);
  return {
    ...running,
    async kill() {
      if (child.exitCode === null && child.signalCode === null && child.pid) process.kill(-child.pid, 'SIGKILL');
      await running.ended();
    },
  };
}

/** The outcome of a command. */
export interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs commands in the project folder. `onOutput` gets their output as it is printed. */
export async function runCommands(
  commands: string,
  env: Readonly<Record<string, string>> = {},
  onOutput: (text: string) => void = () => {},
): Promise<Outcome> {
  const child = spawn('bash', ['-ec', commands], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const outcome = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text) => {
      outcome[name] += text;
      onOutput(text);
    });
  }
  const [status] = await once(child, 'close');
  return { status, ...outcome };
}
