import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { type Logger, pino } from 'pino';
import { findCauses, formatStacks } from './error-summary.ts';
import { printable, printableLines } from './printable.ts';
import type { commonSettings, IgnoredSettings } from './settings.ts';

/** Bytes of lines that wait for an output which cannot be written now; further lines are dropped. */
const MAX_WAITING_BYTES = 1024 * 1024;

/** Lines of one turn of the event loop are written together, from this size on at once; bytes. */
const WRITTEN_BYTES = 64 * 1024;

/** The delay before the next attempt to write: to a full pipe, whose reader is late, and to what fails; milliseconds. */
const LATE_READER_MS = 10;
const FAULT_MS = 1000;

/** How long an exiting process tries to write what waits; milliseconds. */
const EXIT_MS = 200;

/**
 * Writes lines to a file descriptor, in order, at the end of the turn of the event loop that logged them, because a write costs
 * as much as a line. While it cannot be written, for whatever reason, a bounded number of bytes waits, and further lines are
 * dropped and counted: a log never stops the service. A descriptor of a socket must not block.
 */
class LogOutput {
  /** Called once all lines that waited are written, if others were dropped meanwhile. */
  onRecovered: (dropped: number) => void = () => {};
  readonly #fd: number;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** The next attempt to write; undefined: nothing waits. */
  #next: 'soon' | 'later' | undefined;
  #dropped = 0;
  #reported = 0;

  constructor(fd: number) {
    this.#fd = ownDescriptor(fd);
  }

  get dropped(): number {
    return this.#dropped;
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      this.#dropped += 1;
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#next === 'soon' && this.#waitingBytes >= WRITTEN_BYTES) this.flush();
    if (this.#next !== undefined) return;
    this.#next = 'soon';
    setImmediate(() => this.flush());
  }

  /** Writes what waits, and gives up after EXIT_MS. The event loop stands still meanwhile: for a process that exits. */
  flushAtExit(): void {
    for (let waitedMs = 0; this.#writeWaiting() !== undefined && waitedMs < EXIT_MS; waitedMs += LATE_READER_MS) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LATE_READER_MS);
    }
  }

  /** Writes what waits, unless the last attempt has failed: the next one is after a delay. */
  flush(): void {
    if (this.#next === 'later') return;
    this.#attempt();
  }

  #attempt(): void {
    const delayMs = this.#writeWaiting();
    this.#next = delayMs === undefined ? undefined : 'later';
    if (delayMs !== undefined) {
      setTimeout(() => this.#attempt(), delayMs).unref();
      return;
    }
    const dropped = this.#dropped - this.#reported;
    this.#reported = this.#dropped;
    if (dropped > 0) this.onRecovered(dropped);
  }

  /** @returns undefined when nothing waits any more, else the delay before the next attempt */
  #writeWaiting(): number | undefined {
    while (this.#waitingBytes > 0) {
      const [first] = this.#waiting;
      const all = first && this.#waiting.length === 1 ? first : Buffer.concat(this.#waiting);
      try {
        const rest = all.subarray(writeSync(this.#fd, all));
        this.#waiting = [rest];
        this.#waitingBytes = rest.length;
      } catch (error) {
        this.#waiting = [all];
        return (error as NodeJS.ErrnoException).code === 'EAGAIN' ? LATE_READER_MS : FAULT_MS;
      }
    }
    this.#waiting = [];
    return undefined;
  }
}

/**
 * Returns a descriptor of the same pipe that never blocks. Whether the given one does is up to all processes that share
 * it: Node, when it exits, makes it block for the others. What is no pipe, or cannot be opened, is returned as it is.
 */
function ownDescriptor(fd: number): number {
  try {
    return fstatSync(fd).isFIFO() ? openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK) : fd;
  } catch {
    return fd;
  }
}

type LogLevel = ReturnType<typeof commonSettings.LOG_LEVEL>;

/** Standard output, which a process has once. */
const output = new LogOutput(1);
process.once('exit', () => output.flushAtExit());

/** The number of lines of this process that could not be written. */
export const droppedLogLines = (): number => output.dropped;

/** Creates the log of a process: JSON lines on standard output, formatted for people if that is a terminal. */
export async function createLogger(name: string, level: LogLevel): Promise<Logger> {
  const options = { name, level, serializers: { err: describeError } };
  // Node makes a socket, and a pipe that cannot be opened again, non-blocking when it creates this stream.
  const log = pino(options, process.stdout.isTTY ? await prettyOutput() : output);
  output.onRecovered = (dropped) =>
    log.warn({ dropped }, 'log lines dropped: standard output could not be written, and can be again');
  return log;
}

/** Logs what the settings of a starting process come to, and which count as unset. */
export function logSettings(log: Logger, summary: object, { ignored }: IgnoredSettings): void {
  log.info(summary, 'settings in force');
  if (ignored.length > 0) log.warn({ ignored }, 'settings ignored: they are blank, or the address of a Service');
  // What follows may take long, and end the process.
  output.flush();
}

async function prettyOutput(): Promise<{ write(line: string): void }> {
  const { prettyFactory } = await import('pino-pretty');
  const format = prettyFactory({ ignore: 'pid,hostname' });
  return { write: (line) => output.write(format(JSON.parse(line, printableValue))) };
}

/** JSON reviver that makes texts printable; of all texts, only stacks keep their line ends. */
function printableValue(name: string, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  return name === 'stack' ? printableLines(value) : printable(value);
}

/** The loggable parts of an error. Other properties that drivers add, such as a document, are left out. */
function describeError(error: unknown): unknown {
  const chain = findCauses(error);
  const [first] = chain;
  if (!first) return { type: typeof error };
  return { type: first.name, message: chain.map(({ message }) => message).join(': '), stack: formatStacks(error) };
}
