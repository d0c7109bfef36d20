import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

/** Children that run, and folders that are there: whatever ends the benchmark, none of them stays. */
const running = new Set<ChildProcess>();
const folders = new Set<string>();

/** What a process is started with. */
export interface StartOptions {
  /** Its environment, besides PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** Flags for Node. */
  readonly flags?: readonly string[];
}

/** A process of the project. Its standard output goes to the standard error: the report stands alone. */
export function startProcess(file: string, { env = {}, flags = [] }: StartOptions = {}): ChildProcess {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...flags, join(ROOT, file)], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 2, 'inherit', 'ipc'],
    // In a process group of its own a Ctrl-C in the terminal does not reach it: the order of stopping is ours.
    detached: true,
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** Waits for the next message of a process; rejects when it ends instead. */
export async function nextMessage<Message>(child: ChildProcess): Promise<Message> {
  const answered = new AbortController();
  try {
    return await Promise.race([
      once(child, 'message', answered).then(([message]) => message as Message),
      once(child, 'exit', answered).then(([code, signal]) => {
        throw new Error(`${child.spawnargs.at(-1)} has ended (${signal ?? `status ${code}`})`);
      }),
    ]);
  } finally {
    answered.abort();
  }
}

/** A folder that is gone when the benchmark is over. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-bench-'));
  folders.add(folder);
  return folder;
}

/** Stops everything in the reverse order of its start, and removes the folders. */
export async function cleanUp(): Promise<void> {
  for (const child of [...running].toReversed()) {
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
  }
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}

/** The kernel's clock ticks in a second, as it shows them to programs: on every platform of Linux 100. */
const TICKS_PER_SECOND = 100;

/** The processor time that a process has had; microseconds. Undefined where /proc does not tell. */
export function cpuTimeUs(pid: number | undefined): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // After the name, which may contain blanks: fields 3 and up; utime and stime are 14 and 15.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return ((Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND) * 1e6;
  } catch {
    return undefined;
  }
}
