import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** How long a process may take to stop before it is killed; milliseconds. The product gives itself ten seconds. */
const STOP_DEADLINE_MS = 12_000;

/** What has to be done before the benchmark ends, however it ends; the last one first. */
const duties: (() => unknown)[] = [];

/** Has something done before the benchmark ends. */
export function atTheEnd(duty: () => unknown): void {
  duties.push(duty);
}

/** Stops every process, and removes what was made. What cannot be done is told, and does not keep the rest from it. */
export async function cleanUp(): Promise<void> {
  for (let duty = duties.pop(); duty; duty = duties.pop()) {
    try {
      await duty();
    } catch (error) {
      console.error((error as Error).message);
    }
  }
}

/** A folder that is gone when the benchmark is over. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-bench-'));
  atTheEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** How a process is started. */
export interface StartOptions {
  readonly args?: readonly string[];
  /** Its environment, besides PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** Flags for Node. */
  readonly flags?: readonly string[];
  /** Its standard output is read by the caller, or goes to the standard error: the report stands alone. */
  readonly output?: 'read' | 'to standard error' | 'thrown away';
}

const OUTPUTS = { read: 'pipe', 'to standard error': 2, 'thrown away': 'ignore' } as const;

/** Starts a file of the project as a process, which is stopped when the benchmark is over. */
export function startProcess(file: string, options: StartOptions = {}): ChildProcess {
  const { args = [], env = {}, flags = [], output = 'to standard error' } = options;
  const child = spawn(process.execPath, [...flags, join(import.meta.dirname, '..', file), ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', OUTPUTS[output], 'inherit', 'ipc'],
    // In a process group of its own a Ctrl-C in the terminal does not reach it: the order of stopping is ours.
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
