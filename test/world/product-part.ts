import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningProcess, start } from '../support/processes.ts';
import type { Settings } from './settings.ts';
import type { Part, ProductProcess } from './world.ts';

/** The delay before the second SIGTERM; milliseconds. */
const SECOND_SIGNAL_AFTER_MS = 50;

/** The options of a part. */
interface PartOptions {
  readonly name: string;
  /** Relative to the root of the repository: `src/main.ts`. */
  readonly file: string;
  readonly env: Settings;
  readonly within?: readonly string[];
  readonly losesCounts: boolean;
  readonly onUnexpectedEnd: (what: string) => void;
}

/** A process of the product and its descendants. */
export class ProductPart implements Part {
  readonly name: string;
  readonly losesCounts: boolean;
  readonly #options: PartOptions;
  #running: RunningProcess | undefined;
  #isEnding = false;
  readonly #printed: (() => string)[] = [];

  constructor(options: PartOptions) {
    this.#options = options;
    this.name = options.name;
    this.losesCounts = options.losesCounts;
  }

  async start(more: Settings = {}): Promise<void> {
    if (this.#running) return;
    const { file, env, within = [], onUnexpectedEnd } = this.#options;
    const running = start(file, { env: { ...env, ...more }, within });
    this.#running = running;
    this.#isEnding = false;
    this.#printed.push(running.output);
    running.ended().then((status) => {
      if (!this.#isEnding)
        onUnexpectedEnd(`${this.name} ended by itself (${status}): ${running.output().slice(-2000)}`);
      if (this.#running === running) this.#running = undefined;
    });
  }

  /** @param file selects one of the processes that it starts; by default all of them and itself */
  async kill(file?: string): Promise<void> {
    const running = this.#running;
    if (!running) return;
    this.#isEnding = true;
    for (const { pid } of this.#family(running, file)) signal(pid, 'SIGKILL');
    // The output stays open until the last of them has ended.
    await running.ended();
    this.#running = undefined;
  }

  pause(file?: string): void {
    this.#signal('SIGSTOP', file);
  }

  resume(file?: string): void {
    this.#signal('SIGCONT', file);
  }

  mayEnd(): void {
    this.#isEnding = true;
  }

  async terminate(isSignalledTwice = false): Promise<number | NodeJS.Signals> {
    const running = this.#running;
    if (!running) return 0;
    this.#isEnding = true;
    const family = this.#family(running);
    running.child.kill('SIGTERM');
    if (isSignalledTwice) {
      // Service managers do the same: the second signal goes to all processes of the service.
      await sleep(SECOND_SIGNAL_AFTER_MS);
      for (const { pid } of family) signal(pid, 'SIGTERM');
    }
    const status = await running.ended();
    this.#running = undefined;
    return status;
  }

  processes(): readonly ProductProcess[] {
    return this.#running ? this.#family(this.#running) : [];
  }

  outputs(): readonly string[] {
    return this.#printed.map((output) => output());
  }

  #signal(name: NodeJS.Signals, file?: string): void {
    if (this.#running) for (const { pid } of this.#family(this.#running, file)) signal(pid, name);
  }

  /** Descendants come first: a parent that is signalled first would stop them itself. */
  #family({ child }: RunningProcess, file?: string): ProductProcess[] {
    const family = [...descendants(child.pid ?? 0), child.pid ?? 0];
    const named = family.map((pid) => ({ pid, command: commandOf(pid) }));
    const selected = named.filter(({ command }) => (file ? command.includes(file) : /\.ts/.test(command)));
    return selected.map(({ pid, command }) => ({ pid, name: /(\w+\/)?\w+\.ts/.exec(command)?.[0] ?? this.name }));
  }
}

function descendants(pid: number): number[] {
  const children = readProc(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number);
  return [...children.flatMap(descendants), ...children];
}

const commandOf = (pid: number): string => readProc(`/proc/${pid}/cmdline`).replaceAll('\0', ' ');

/** Reads a file of /proc; empty when the process has ended. */
function readProc(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
