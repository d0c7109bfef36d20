import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { LoadResult, Pace } from './drive.ts';
import type { Scenario } from './workload.ts';

/** The time after which a process that does not stop is killed. The product takes at most ten seconds to stop. */
const STOP_DEADLINE_MS = 12_000;

/** Cleanup functions, run in reverse order when the benchmark ends or fails. */
const cleanups: (() => unknown)[] = [];

/** Registers a cleanup function. */
export function atTheEnd(cleanup: () => unknown): void {
  cleanups.push(cleanup);
}

/** Runs a benchmark, cleans up, and exits. The exit status is 1 when it fails or is interrupted, otherwise the one that it has set. */
export async function runBenchmark(run: () => Promise<void>): Promise<never> {
  const interrupted = new Promise<never>((_, reject) => {
    // The handlers stay registered, so that a second signal does not interrupt the cleanup.
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => reject(new Error(`stopped by ${signal}`)));
  });
  const fail = (error: unknown) => {
    console.error((error as Error).message);
    process.exitCode = 1;
  };
  await Promise.race([run(), interrupted]).catch(fail);
  // A failed cleanup does not prevent the others.
  for (const cleanup of cleanups.reverse()) await Promise.try(cleanup).catch(fail);
  process.exit();
}

/** Creates a folder that is removed when the benchmark ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-bench-'));
  atTheEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * Runs a file of the project in a process, which is stopped when the benchmark ends.
 *
 * @param env its environment, in addition to PATH
 * @param output the file descriptor of its standard output. The benchmark's own standard output has the report
 */
export function startProcess(file: string, env: Readonly<Record<string, string>>, output = 2): ChildProcess {
  const child = spawn(process.execPath, [resolve(import.meta.dirname, '..', file)], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', output, 'inherit', 'ipc'],
    // Uses its own process group, so that Ctrl-C does not stop it before the cleanup.
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

/** Waits for the next message of a process; rejects when the process exits. */
export async function nextMessage<Message>(child: ChildProcess): Promise<Message> {
  const arrived = new AbortController();
  try {
    return await Promise.race([
      once(child, 'message', arrived).then(([message]) => message as Message),
      once(child, 'exit', arrived).then(([code, signal]) => {
        throw new Error(`${child.spawnargs.at(-1)} exited (${signal ?? `status ${code}`})`);
      }),
    ]);
  } finally {
    arrived.abort();
  }
}

interface Load {
  readonly scenario: Scenario;
  readonly pace: Pace;
}

/** Lets a process that serves loads perform a load. */
export function performLoad(child: ChildProcess, load: Load): Promise<LoadResult> {
  child.send(load);
  return nextMessage(child);
}

/** In a child process: sends its parent a message that it is ready, and performs the loads that the parent sends. */
export function serveLoads(perform: (scenario: Scenario, pace: Pace) => Promise<LoadResult>): void {
  process.on('message', async ({ scenario, pace }: Load) => process.send?.(await perform(scenario, pace)));
  endWithParent();
  process.send?.('ready');
}

/** Exits this process on SIGTERM or when its parent has exited. */
export function endWithParent(): void {
  process.once('SIGTERM', () => process.exit(0));
  process.once('disconnect', () => process.exit(0));
}

/**
 * Returns the processor time of a process so far, or NaN where Linux does not provide it. It sums all threads, because for whole processes
 * the kernel counts clock ticks, which are longer than a request.
 */
export function cpuTimeUs(pid: number | undefined): number {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    // The first of three numbers is the nanoseconds on a processor.
    const times = threads.map((id) => Number.parseInt(readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8'), 10));
    return times.reduce((sum, time) => sum + time) / 1000;
  } catch {
    return Number.NaN;
  }
}

export const CLI = join(import.meta.dirname, '../operator/cli.ts');

/** Runs an operator command, and returns its duration in seconds. */
export const command = (DATABASE_URL: string, ...args: string[]): Promise<number> =>
  measureSeconds(() =>
    promisify(execFile)(process.execPath, [CLI, ...args], { env: { ...process.env, DATABASE_URL } }),
  );

export async function measureSeconds(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}
