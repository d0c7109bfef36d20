import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** How long a process may take to stop before it is killed; milliseconds. The product takes at most ten seconds. */
const STOP_DEADLINE_MS = 12_000;

/** Cleanup functions, run in reverse order when the benchmark ends or fails. */
const cleanups: (() => unknown)[] = [];

/** Registers a cleanup function. */
export function atTheEnd(cleanup: () => unknown): void {
  cleanups.push(cleanup);
}

/** Runs all cleanup functions. An error is printed and does not prevent the others. */
export async function cleanUp(): Promise<void> {
  for (let cleanup = cleanups.pop(); cleanup; cleanup = cleanups.pop()) {
    try {
      await cleanup();
    } catch (error) {
      console.error((error as Error).message);
    }
  }
}

/** Creates a folder that is removed when the benchmark ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-bench-'));
  atTheEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface StartOptions {
  /** Its environment, in addition to PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** Its standard output; not the benchmark's own, which has the report. */
  readonly output?: 'read' | 'to standard error' | 'discarded';
}

const OUTPUTS = { read: 'pipe', 'to standard error': 2, discarded: 'ignore' } as const;

/** Runs a file of the project in a process, which is stopped when the benchmark ends. */
export function startProcess(file: string, options: StartOptions = {}): ChildProcess {
  const { env = {}, output = 'to standard error' } = options;
  const child = spawn(process.execPath, [join(import.meta.dirname, '..', file)], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', OUTPUTS[output], 'inherit', 'ipc'],
    // In its own process group, so that Ctrl-C does not stop it before its cleanup.
    detached: true,
  });
  atTheEnd(() => stop(child));
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const kill = setTimeout(() => child.kill('SIGKILL'), STOP_DEADLINE_MS);
  await exited;
  clearTimeout(kill);
}
