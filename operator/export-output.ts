import { type FileHandle, open } from 'node:fs/promises';
import { errorSummary } from '../common/error-summary.ts';
import { printableLines } from '../common/printable.ts';
import type { ExportPosition } from '../src/domain/resume-token.ts';
import type { ExportFormat } from './export-format.ts';

/** Where an export goes. */
export interface ExportOutput {
  /** What it has already; undefined: nothing, not even a header. */
  readonly written: { readonly last: ExportPosition | undefined } | undefined;
  /** @throws OutputFault */
  write(text: string): Promise<void>;
  /** Lets go of it once everything is kept; may be called twice. @throws OutputFault */
  close(): Promise<void>;
}

/** What keeps an export from being written, in words for the operator. */
export class OutputFault extends Error {
  /** Whether nobody takes any more of it. */
  readonly isClosedPipe: boolean;

  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'OutputFault';
    this.isClosedPipe = (cause as NodeJS.ErrnoException | undefined)?.code === 'EPIPE';
  }
}

/** The longest record that is one of ours, with room to spare; bytes. */
const MAX_RECORD_BYTES = 256 * 1024;

const QUOTE = '"'.charCodeAt(0);
const LINE_END = '\n'.charCodeAt(0);

/** The standard output; on a terminal nothing of it is obeyed. */
export function standardOutput({ stdout } = process): ExportOutput {
  // Whoever writes is told by the write.
  stdout.on('error', () => {});
  const shown = (text: string) => (stdout.isTTY ? printableLines(text.replaceAll('\r\n', '\n')) : text);
  return {
    written: undefined,
    write: (text) =>
      new Promise((resolve, reject) => {
        stdout.write(shown(text), (error) => (error ? reject(faultOf('the standard output', error)) : resolve()));
      }),
    async close() {},
  };
}

/**
 * A file for its owner alone.
 *
 * @param resumes whether to go on where it ends, if it is there: behind its last whole record
 * @throws OutputFault when it is there and is not to be gone on with, or has something else than an export
 */
export async function fileOutput(path: string, format: ExportFormat, resumes: boolean): Promise<ExportOutput> {
  const file = await open(path, resumes ? 'a+' : 'ax', 0o600).catch((error) => {
    if (error.code === 'EEXIST') throw new OutputFault(`${path} is there already: --resume goes on where it ends`);
    throw faultOf(path, error);
  });
  try {
    const written = resumes ? await cutToRecords(file, path, format) : undefined;
    return {
      written,
      write: (text) => file.appendFile(text).catch(rethrow),
      async close() {
        try {
          await file.datasync();
        } catch (error) {
          rethrow(error);
        } finally {
          await file.close();
        }
      },
    };
  } catch (error) {
    await file.close();
    throw error instanceof OutputFault ? error : faultOf(path, error);
  }

  function rethrow(error: unknown): never {
    throw faultOf(path, error);
  }
}

/** Cuts a half record off the end of a file; tells which lead is its last. */
async function cutToRecords(file: FileHandle, path: string, format: ExportFormat): Promise<ExportOutput['written']> {
  const isOurs = format.beginning.startsWith(await textAt(file, 0, format.beginning.length));
  const { begin, end } = await lastRecord(file, format.hasQuotes);
  const record = await textAt(file, begin, Math.min(end - begin, MAX_RECORD_BYTES));
  const last = format.leadIn(record);
  if (!isOurs || (end > 0 && last === undefined && record !== format.header)) {
    throw new OutputFault(`${path} has something else than such an export, and is left as it is`);
  }
  await file.truncate(end);
  return end === 0 ? undefined : { last };
}

async function textAt(file: FileHandle, position: number, length: number): Promise<string> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, position);
  return buffer.toString('utf8', 0, bytesRead);
}

/** Where the last whole record of a file begins and ends. */
async function lastRecord(file: FileHandle, hasQuotes: boolean): Promise<{ begin: number; end: number }> {
  let [begin, end, at, isQuoted] = [0, 0, 0, false];
  for await (const chunk of file.createReadStream({ start: 0, autoClose: false })) {
    const bytes = chunk as Buffer;
    for (let index = 0; index < bytes.length; index += 1) {
      const byte = bytes[index];
      if (byte === QUOTE && hasQuotes) isQuoted = !isQuoted;
      else if (byte === LINE_END && !isQuoted) [begin, end] = [end, at + index + 1];
    }
    at += bytes.length;
  }
  return { begin, end };
}

const faultOf = (what: string, error: unknown): OutputFault =>
  new OutputFault(`${what}: ${errorSummary(error)}`, error);
