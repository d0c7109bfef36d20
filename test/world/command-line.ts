import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningProcess, start } from '../support/processes.ts';
import type { Settings } from './settings.ts';

/** The result of a command. */
export interface CommandEnd {
  /** The exit status, or the signal that ended it. */
  readonly status: number | NodeJS.Signals;
  readonly stdout: string;
  /** Its standard error. */
  readonly stderr: string;
}

/** A program other than the command line, and additional settings. */
export interface OtherProgram {
  readonly file?: string;
  readonly env?: Settings;
}

/** The operator's commands, as on a machine with access to the database, which can be lost. */
export abstract class CommandLine {
  #isDown = false;

  /** @param endsAfterMs the time after which the command is killed; milliseconds */
  async run(args: readonly string[], endsAfterMs: number, other: OtherProgram = {}): Promise<CommandEnd> {
    if (this.#isDown) return { status: 'SIGKILL', stdout: '', stderr: '' };
    return this.runProgram(args, endsAfterMs, other);
  }

  /** Kills all running commands, as the loss of their machine does, and starts none until `run` has ended. */
  async whileDown(run: () => Promise<void>): Promise<void> {
    this.#isDown = true;
    await this.kill();
    await run();
    this.#isDown = false;
  }

  abstract kill(): Promise<void>;

  protected abstract runProgram(args: readonly string[], endsAfterMs: number, other: OtherProgram): Promise<CommandEnd>;
}

/** Runs each command in a process. */
export class RealCommandLine extends CommandLine {
  readonly #env: Settings;
  readonly #within: readonly string[];
  readonly #running = new Set<RunningProcess>();

  /** @param within the command prefix that gives a process access to the disk of the database */
  constructor(env: Settings, within: readonly string[] = []) {
    super();
    this.#env = env;
    this.#within = within;
  }

  protected override async runProgram(
    args: readonly string[],
    endsAfterMs: number,
    { file = 'operator/cli.ts', env = {} }: OtherProgram,
  ): Promise<CommandEnd> {
    const running = start(file, { args, env: { ...this.#env, ...env }, within: this.#within });
    let [stdout, stderr] = ['', ''];
    running.child.stdout?.on('data', (chunk) => {
      stdout += chunk;
    });
    running.child.stderr?.on('data', (chunk) => {
      stderr += chunk;
    });
    this.#running.add(running);
    const over = new AbortController();
    sleep(endsAfterMs, undefined, { signal: over.signal }).then(
      () => running.kill(),
      () => {},
    );
    const status = await running.ended();
    over.abort();
    this.#running.delete(running);
    return { status, stdout, stderr };
  }

  override async kill(): Promise<void> {
    await Promise.all([...this.#running].map((running) => running.kill()));
  }
}
