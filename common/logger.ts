import { type Logger, pino } from 'pino';
import { printable, printableLines } from './printable.ts';

/** How grave a line has to be in order to be written. */
export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

/** How many errors that led to one another are told. */
const MAX_CAUSES = 5;

/** Makes the log of a process: JSON, a line each, on standard output; for reading with the eyes where that is a terminal. */
export async function createLogger(name: string, level: LogLevel): Promise<Logger> {
  const options = { name, level, serializers: { err: describeError } };
  if (!process.stdout.isTTY) return pino(options);
  const { prettyFactory } = await import('pino-pretty');
  const layOut = prettyFactory({ ignore: 'pid,hostname' });
  return pino(options, { write: (line) => void process.stdout.write(layOut(JSON.parse(line, forTheEyes))) });
}

/** A value of a line: of all texts only a stack has lines. */
function forTheEyes(name: string, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  return name === 'stack' ? printableLines(value) : printable(value);
}

/** An error as the log may tell it. Whatever else a driver hangs on its errors, such as a document, stays out. */
function describeError(error: unknown): unknown {
  const chain: Error[] = [];
  for (let next = error; next instanceof Error && chain.length < MAX_CAUSES; next = next.cause) chain.push(next);
  const [first] = chain;
  if (!first) return { type: typeof error };
  return {
    type: first.name,
    message: chain.map(({ message }) => message).join(': '),
    stack: chain.map(({ stack }) => stack).join('\ncaused by: '),
  };
}
