import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { type LevelWithSilent, type Logger, pino } from 'pino';
import { findCauses, formatStacks } from './error-summary.ts';
import { printable, printableLines } from './printable.ts';
import type { IgnoredSettings } from './settings.ts';

/** Bytes of lines that may wait for an output that cannot be written. Further lines are dropped. */
const MAX_WAITING_BYTES = 1024 * 1024;

/** Lines of one event-loop turn are written together. From this size on they are written at once; bytes. */
const WRITTEN_BYTES = 64 * 1024;

/** The delay before the next write: to a full pipe with a slow reader, and after an error; milliseconds. */
const LATE_READER_MS = 10;
const FAULT_MS = 1000;

/** How long an exiting process tries to write waiting lines; milliseconds. */
const EXIT_MS = 200;

/**
 * Writes lines to a file descriptor, in order, at the end of the event-loop turn, because a write costs as much as a line. A log never
 * stops the service: while the output cannot be written, a bounded number of bytes waits. Further lines are dropped and counted. A socket's
 * descriptor must not block.
 */
class LogOutput {
  /** Called once all waiting lines are written, if others were dropped meanwhile. */
  onRecovered: (dropped: number) => void = () => {};
  readonly #fd: number;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** The next attempt to write; undefined when nothing waits. */
  #next: 'soon' | 'later' | undefined;
  /** Lines that could not be written. */
  dropped = 0;
  #reported = 0;

  constructor(fd: number) {
    this.#fd = ownDescriptor(fd);
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      this.dropped += 1;
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#next === 'soon' && this.#waitingBytes >= WRITTEN_BYTES) this.flush();
    if (this.#next !== undefined) return;
    this.#next = 'soon';
    setImmediate(() => this.flush());
  }

  /** Writes waiting lines, and gives up after EXIT_MS. It blocks the event loop, so it is for an exiting process. */
  flushAtExit(): void {
    for (let waitedMs = 0; this.#writeWaiting() !== undefined && waitedMs < EXIT_MS; waitedMs += LATE_READER_MS) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LATE_READER_MS);
    }
  }

  /** Writes waiting lines, unless the last attempt failed: the next one follows after a delay. */
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
    const dropped = this.dropped - this.#reported;
    this.#reported = this.dropped;
    if (dropped > 0) this.onRecovered(dropped);
  }

  /** @returns undefined when nothing waits any more, or the delay before the next attempt */
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
 * Returns a descriptor of the same pipe that never blocks. All processes that share the given one decide whether it blocks: an exiting Node
 * makes it block for the others. Anything but a pipe, or a pipe that cannot be opened, is returned unchanged.
 */
function ownDescriptor(fd: number): number {
  try {
    return fstatSync(fd).isFIFO() ? openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK) : fd;
  } catch {
    return fd;
  }
}

/** Standard output: one per process. */
const output = new LogOutput(1);
process.once('exit', () => output.flushAtExit());

/** Returns how many lines this process could not write. */
export const droppedLogLines = (): number => output.dropped;

/** Creates the log of a process: JSON lines on standard output, formatted for people on a terminal. */
export async function createLogger(name: string, level: LevelWithSilent): Promise<Logger> {
  const options = { name, level, serializers: { err: describeError } };
  // Creating this stream makes Node set a socket, or a pipe that cannot be reopened, to non-blocking.
  const log = pino(options, process.stdout.isTTY ? await prettyOutput() : output);
  output.onRecovered = (dropped) =>
    log.warn({ dropped }, 'log lines dropped: standard output could not be written, and can be again');
  return log;
}

/** Logs a summary of a starting process's settings, and which settings count as unset. */
export function logSettings(log: Logger, summary: object, { ignored }: IgnoredSettings): void {
  log.info(summary, 'settings in force');
  if (ignored.length > 0) log.warn({ ignored }, 'settings ignored: they are blank, or the address of a Service');
  // The next steps may take long, and end the process.
  output.flush();
}

async function prettyOutput(): Promise<{ write(line: string): void }> {
  const { prettyFactory } = await import('pino-pretty');
  const format = prettyFactory({ ignore: 'pid,hostname' });
  return { write: (line) => output.write(format(JSON.parse(line, printableValue))) };
}

/** JSON reviver that makes texts printable. Only stacks keep their line breaks. */
function printableValue(name: string, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  return name === 'stack' ? printableLines(value) : printable(value);
}

/** Returns the loggable parts of an error, without properties that drivers add, such as a document. */
function describeError(error: unknown): unknown {
  const chain = findCauses(error);
  const [first] = chain;
  if (!first) return { type: typeof error };
  return { type: first.name, message: chain.map(({ message }) => message).join(': '), stack: formatStacks(error) };
}
