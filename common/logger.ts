import { type Logger, pino } from 'pino';
import { causesOf, stacksOf } from './error-summary.ts';
import { LogOutput } from './log-output.ts';
import { printable, printableLines } from './printable.ts';
import type { UnusedVariables } from './settings.ts';

/** The least severity of the lines that are written. */
export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

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

/** Logs what the settings of a starting process come to, and which variables have no effect. */
export function logSettings(log: Logger, summary: object, { ignored, unknown }: UnusedVariables): void {
  log.info(summary, 'settings in force');
  if (ignored.length > 0) log.warn({ ignored }, 'settings ignored: they are blank, or the address of a Service');
  if (unknown.length > 0) log.warn({ unknown }, 'variables that are no settings: they have no effect');
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
  const chain = causesOf(error);
  const [first] = chain;
  if (!first) return { type: typeof error };
  return { type: first.name, message: chain.map(({ message }) => message).join(': '), stack: stacksOf(error) };
}
