import { type ChildProcess, type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { afterAll, beforeAll, onTestFinished } from 'vitest';

export const ROOT = join(import.meta.dirname, '../..');

const { NODE_COMPILE_CACHE = '' } = process.env;

/** The Node option that makes a process plant the bug in PLANTED_BUG. */
const PLANTING = `--import=${new URL('../planted-bugs/plant-in-process.ts', import.meta.url)}`;

/** Environment variables that make a process plant the bug of this test run, if there is one. */
export const PLANTED: Readonly<Record<string, string>> = process.env.PLANTED_BUG
  ? { PLANTED_BUG: process.env.PLANTED_BUG, NODE_OPTIONS: PLANTING }
  : {};

/** Whether the README's commands can run here. CI requires it. */
export const hasShellAndCurl =
  process.env.CI === 'true' || ['bash', 'curl'].every((command) => spawnSync(command, ['--version']).status === 0);

/** Runs a script in bash and returns its standard output and error as one text. */
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

/** Creates a folder that is removed at the end of the test. */
export function temporaryFolder(whenFinished = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  whenFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * Creates a folder for all tests of a file or a `describe`, before their own hooks; removes it after them.
 *
 * @returns a function that returns its path, in tests and hooks
 */
export function sharedFolder(): () => string {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return () => folder;
}

/** A process of the product, run the way its users run it. */
export interface RunningProcess {
  readonly child: ChildProcess;
  /** The standard output and error so far, as one text. */
  output(): string;
  /** Waits until the output matches. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Waits for the end; returns the exit status, or the signal that killed the process. */
  ended(): Promise<number | NodeJS.Signals>;
  /** Kills it with SIGKILL unless it has ended. */
  kill(): Promise<void>;
}

interface RunOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The folder of the release to run, by default this repository. */
  readonly release?: string;
  /** A command prefix, such as one that enters another mount namespace. */
  readonly within?: readonly string[];
}

/** Runs a file of the product like `start`. The process is killed at the end of the test. */
export function run(file: string, options: RunOptions = {}): RunningProcess {
  const running = start(file, options);
  onTestFinished(() => running.kill());
  return running;
}

/**
 * Runs a file of the product with the pinned Node. No settings are inherited from the environment; ports are free ones by
 * default. The caller must kill the process.
 */
export function start(
  file: string,
  { args = [], env = {}, release = ROOT, cwd = release, within = [] }: RunOptions = {},
): RunningProcess {
  // The bug is planted in this process only, or in all processes of the test run.
  const { PLANTED_BUG = process.env.PLANTED_BUG ?? '' } = env;
  const [command = '', ...rest] = [...within, process.execPath, resolve(release, file), ...args];
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

/** Collects the output of a process from its start. */
export function watch(child: ChildProcessByStdio<Writable | null, Readable, Readable>): RunningProcess {
  let output = '';
  let more = Promise.withResolvers<void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
      more.resolve();
      more = Promise.withResolvers();
    });
  }
  // Child processes hold the output open, so this waits for them, too.
  const closed = once(child, 'close');
  const printed = async (pattern: RegExp) => {
    for (;;) {
      const match = pattern.exec(output);
      if (match) return match;
      const hasClosed = await Promise.race([closed.then(() => true), more.promise]);
      if (hasClosed === true && !pattern.test(output)) throw new Error(`ended without printing ${pattern}:\n${output}`);
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

/** Returns the address that a process of the product logs when it listens. */
export async function readAddress(running: RunningProcess): Promise<string> {
  const [, url = ''] = await running.printed(/Server listening at (https?:\/\/[0-9.:]+)/);
  return url;
}
