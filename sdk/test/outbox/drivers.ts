import type { ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { expect } from 'vitest';
import { type RunningProcess, watch } from '../../../test/tools/processes.ts';

/** A line that a driver prints; see README.md. */
export type Line = Readonly<Record<string, unknown>>;

/** A line that a driver reads; see README.md. */
export interface Command {
  readonly command: string;
  readonly arguments: object;
  readonly settings: object;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** The processes of one driver. They are reused, because an interpreter starts slowly. */
export class Drivers {
  readonly #start: () => Child;
  readonly #idle: Driver[] = [];

  constructor(start: () => Child) {
    this.#start = start;
  }

  /** Gives a command to a process of its own, which ends afterwards. The caller waits for that or kills it. */
  begin(command: Command): Driver {
    const driver = new Driver(this.#start());
    driver.begin(command);
    driver.end();
    return driver;
  }

  /** Runs a command; returns its result or error, and the preceding lines. */
  async run(command: Command): Promise<{ readonly result: Line; readonly before: readonly Line[] }> {
    const driver = this.#idle.pop() ?? new Driver(this.#start());
    driver.begin(command);
    const result = await driver.result();
    this.#idle.push(driver);
    return { result, before: driver.lines().slice(0, -1) };
  }

  /** Ends the remaining processes. */
  async stop(): Promise<void> {
    for (const driver of this.#idle) driver.end();
    for (const { process } of this.#idle) expect(await process.ended(), process.output()).toBe(0);
  }
}

/** A process of a driver. */
export class Driver {
  readonly process: RunningProcess;
  readonly #stdin: Writable;
  #printed = '';
  #answered = Promise.withResolvers<void>();

  constructor(child: Child) {
    this.#stdin = child.stdin;
    // A killed process reads nothing.
    child.stdin.on('error', () => {});
    child.stdout.setEncoding('utf8').on('data', (text) => {
      this.#printed += text;
      if (/^\{"(?:result|error)":.*\n$/m.test(this.#printed)) this.#answered.resolve();
    });
    this.process = watch(child);
  }

  begin(command: Command): void {
    this.#printed = '';
    this.#answered = Promise.withResolvers();
    this.#stdin.write(`${JSON.stringify(command)}\n`);
  }

  /** Ends the process after its command. */
  end(): void {
    this.#stdin.end();
  }

  /** Returns the lines printed since the command. */
  lines(): readonly Line[] {
    const lines = this.#printed.split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line));
  }

  /** Returns the result of the command, or its error, once a process that ends afterwards has ended. */
  async result(): Promise<Line> {
    const ended = this.process.ended();
    const status = await (this.#stdin.writableEnded ? ended : Promise.race([this.#answered.promise, ended]));
    const { result, ...error } = this.lines().at(-1) ?? {};
    if (!status && result !== undefined) return result as Line;
    if (!status && 'error' in error) return error;
    throw new Error(`the driver ended with ${status}:\n${this.process.output()}`);
  }
}
