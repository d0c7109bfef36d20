import { type ChildProcess, type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { onTestFinished } from 'vitest';

export const ROOT = join(import.meta.dirname, '../..');

const { NODE_COMPILE_CACHE = '' } = process.env;

/** What has a process do what PLANTED_BUG names. */
const PLANTING = `--import=${join(ROOT, 'test/planted-bugs/plant-in-process.ts')}`;

/** Whether what the README has people type can be typed here; in CI it has to be. */
export const hasShellAndCurl =
  process.env.CI === 'true' || ['bash', 'curl'].every((command) => spawnSync(command, ['--version']).status === 0);

/** Has a script carried out by bash, and gives everything that it printed. */
export async function bash(script: string, env: Record<string, string> = {}): Promise<string> {
  const child = spawn('bash', ['-s'], { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  child.stderr.on('data', (chunk) => {
    output += chunk;
  });
  child.stdin.end(script);
  await once(child, 'close');
  return output;
}

/** A folder of one's own, gone when the test is over. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A process of the product as its user runs it. */
export interface RunningProcess {
  readonly child: ChildProcess;
  /** Everything it has printed so far, standard output and error in one. */
  output(): string;
  /** Waits until its output matches. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Waits for its end: the exit status, or the signal that ended it. */
  ended(): Promise<number | NodeJS.Signals>;
  /** Ends it at once, unless it has ended. */
  kill(): Promise<void>;
}

interface RunOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The folder of the release that it is a file of; unless told, of this one. */
  readonly release?: string;
  /** What stands before its command, such as what lets it see a disk of its own. */
  readonly within?: readonly string[];
}

/** Runs a file of the product as `start` does. The process is killed when the test is over. */
export function run(file: string, options: RunOptions = {}): RunningProcess {
  const running = start(file, options);
  onTestFinished(() => running.kill());
  return running;
}

/**
 * Runs a file of the product with the pinned Node. Only the settings given are set; ports are free ones unless they are
 * given. Whoever starts it must kill it.
 */
export function start(
  file: string,
  { args = [], env = {}, release = ROOT, cwd = release, within = [] }: RunOptions = {},
): RunningProcess {
  // What the product does wrong in a test of the tests: one process, or all of them.
  const { PLANTED_BUG = process.env.PLANTED_BUG ?? '' } = env;
  const [command = '', ...rest] = [...within, process.execPath, join(release, file), ...args];
  const child = spawn(command, rest, {
    cwd,
    env: {
      PATH: process.env.PATH,
      CORE_PORT: '0',
      GATEWAY_PORT: '0',
      SHUTDOWN_DRAIN_MS: '0',
      LOG_LEVEL: 'info',
      PLANTED_BUG,
      NODE_COMPILE_CACHE,
      ...env,
      NODE_OPTIONS: `--disable-warning=ExperimentalWarning ${PLANTED_BUG && PLANTING} ${env.NODE_OPTIONS ?? ''}`,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return watch(child);
}

/** Keeps what a process prints, from its start on. */
export function watch(child: ChildProcessByStdio<Writable | null, Readable, Readable>): RunningProcess {
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  child.stderr.on('data', (chunk) => {
    output += chunk;
  });
  // Also counts its children: they hold its output open.
  const closed = once(child, 'close');
  const printed = async (pattern: RegExp) => {
    for (;;) {
      const match = pattern.exec(output);
      if (match) return match;
      const over = await Promise.race([closed.then(() => true), onceAny(child)]);
      if (over === true && !pattern.test(output)) throw new Error(`ended without printing ${pattern}:\n${output}`);
    }
  };
  return {
    child,
    output: () => output,
    printed,
    async ended() {
      const [code, signal] = await closed;
      return code ?? signal;
    },
    async kill() {
      child.kill('SIGKILL');
      await closed;
    },
  };
}

/** Where a process of the product listens, taken from its log. */
export async function addressOf(running: RunningProcess): Promise<string> {
  const [, url = ''] = await running.printed(/Server listening at (https?:\/\/[0-9.:]+)/);
  return url;
}

function onceAny(child: ChildProcess): Promise<unknown> {
  return Promise.race([child.stdout, child.stderr].map((stream) => stream && once(stream, 'data')));
}
