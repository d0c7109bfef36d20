import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningProcess, start } from '../support/processes.ts';
import type { Settings } from './settings.ts';

/** What a command came to. */
export interface CommandEnd {
  /** Its exit status, or the signal that ended it. */
  readonly status: number | NodeJS.Signals;
  readonly answer: string;
  /** What it says besides its answer. */
  readonly complaint: string;
}

/** Where operators type commands of the product: a machine that sees the database. */
export class CommandLine {
  readonly #env: Settings;
  readonly #within: readonly string[];
  readonly #running = new Set<RunningProcess>();
  #isDown = false;

  /** @param within what stands before a command that is to see the disk of the database */
  constructor(env: Settings, within: readonly string[] = []) {
    this.#env = env;
    this.#within = within;
  }

  /**
   * @param endsAfterMs when it is killed, unless it has ended; milliseconds
   * @param other another program than the command line, and other settings
   */
  async run(
    args: readonly string[],
    endsAfterMs: number,
    { file = 'operator/cli.ts', env = {} }: { readonly file?: string; readonly env?: Settings } = {},
  ): Promise<CommandEnd> {
    if (this.#isDown) return { status: 'SIGKILL', answer: '', complaint: '' };
    const running = start(file, { args, env: { ...this.#env, ...env }, within: this.#within });
    let [answer, complaint] = ['', ''];
    running.child.stdout?.on('data', (chunk) => {
      answer += chunk;
    });
    running.child.stderr?.on('data', (chunk) => {
      complaint += chunk;
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
    return { status, answer, complaint };
  }

  /** Ends what runs, as the loss of its machine does, and has nothing begin until something is over. */
  async whileDown(happen: () => Promise<void>): Promise<void> {
    this.#isDown = true;
    await this.kill();
    await happen();
    this.#isDown = false;
  }

  async kill(): Promise<void> {
    await Promise.all([...this.#running].map((running) => running.kill()));
  }
}
