import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'vitest';
import { ROOT } from './processes.ts';

/** How the examples are run. */
export const readme = readFileSync(join(ROOT, 'examples/README.md'), 'utf8');

/** The commands of a page that stand under a mark. */
export function commandsIn(page: string, mark: string): string {
  const [, commands] = new RegExp(`<!-- ${mark} -->\n\`\`\`sh\n([\\s\\S]*?)\`\`\``).exec(page) ?? [];
  if (commands === undefined) throw new Error(`there are no commands marked ${mark}`);
  return commands;
}

/** The commands of the examples' README that stand under a mark. */
export const commandsOf = (mark: string): string => commandsIn(readme, mark);

/** The program that stands under a mark of a page. */
export function exampleOf(page: string, mark: string): string {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const [, program] = new RegExp(`<!-- ${mark} -->\\n\`\`\`\\w+\\n([\\s\\S]*?)\`\`\``).exec(text) ?? [];
  if (program === undefined) throw new Error(`${page} has no program marked ${mark}`);
  return program;
}

/** Commands that must succeed here, and do not. */
export const missingOf = (tools: readonly string[]): readonly string[] =>
  tools.filter((tool) => spawnSync('bash', ['-c', tool], { cwd: ROOT }).status !== 0);

/** A suite that runs an example, all tests at once: mostly they wait. Nobody has the tools of every language; what is missing is told, in CI too. */
export function describeWithTools(tools: readonly string[], name: string, body: () => void): void {
  const missing = missingOf(['bash --version', ...tools]);
  if (missing.length === 0) {
    describe.concurrent(name, body);
  } else {
    console.warn(`NOT RUN: ${name}. These must succeed here: ${missing.join(', ')}.`);
    describe.skip(name, body);
  }
}

/** Begins commands in the folder of the project that go on until they are killed. The last of them is the process itself. */
export function beginCommands(commands: string, env: Readonly<Record<string, string>>): ChildProcess {
  return spawn('bash', ['-ec', commands], { cwd: ROOT, env: { ...process.env, ...env }, stdio: 'ignore' });
}

/** What a command did. */
export interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs commands in the folder of the project. `onOutput` gets what they print, as they do. */
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
