import { fstatSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { errorSummary } from '../common/error-summary.ts';
import { printableLines } from '../common/printable.ts';
import type { ExportPosition } from '../src/domain/cursor.ts';
import { CommandFault } from './command.ts';
import type { ExportFormat } from './export-format.ts';

export interface ExportOutput {
  /** What it already contains; undefined: nothing, not even a header. */
  readonly written: { readonly last: ExportPosition | undefined } | undefined;
  /** @throws OutputFault */
  write(text: string): Promise<void>;
  /** Syncs and closes it; may be called twice. @throws OutputFault */
  close(): Promise<void>;
}

/** An export that cannot be written; the message is for the operator. */
export class OutputFault extends CommandFault {
  /** Whether the reader closed the pipe. */
  readonly isClosedPipe: boolean;

  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.isClosedPipe = (cause as NodeJS.ErrnoException | undefined)?.code === 'EPIPE';
  }
}

/** More than the longest record of an export; bytes. */
const MAX_RECORD_BYTES = 256 * 1024;

const QUOTE = '"'.charCodeAt(0);
const LINE_END = '\n'.charCodeAt(0);

/** Writes to standard output. A terminal gets control characters escaped. */
export function standardOutput(): ExportOutput {
  const { stdout } = process;
  const escaped = (text: string) => (stdout.isTTY ? printableLines(text.replaceAll('\r\n', '\n')) : text);
  const write = (text: string) =>
    new Promise<void>((resolve, reject) => {
      stdout.write(text, (error) => (error ? reject(error) : resolve()));
    });
  return {
    written: undefined,
    async write(text) {
      try {
        // On a file, the stream takes a write that a full disk cut for a whole one.
        if (fstatSync(stdout.fd).isFile()) writeFileSync(stdout.fd, text);
        else await write(escaped(text));
      } catch (error) {
        throw faultOf('the standard output', error);
      }
    },
    async close() {},
  };
}

/**
 * Writes to a file that only its owner can read.
 *
 * @param resumes whether to continue an existing file after its last complete record
 * @throws OutputFault when the file exists and is not to be continued, or is not an export
 */
export async function fileOutput(path: string, format: ExportFormat, resumes: boolean): Promise<ExportOutput> {
  const file = await open(path, resumes ? 'a+' : 'ax', 0o600).catch((error) => {
    if (error.code === 'EEXIST')
      throw new OutputFault(`${path} exists: name another file, or continue it with --resume`);
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

/** Truncates a file after its last complete record, and returns the position of that record. */
async function cutToRecords(file: FileHandle, path: string, format: ExportFormat): Promise<ExportOutput['written']> {
  const isExport = format.beginning.startsWith(await textAt(file, 0, format.beginning.length));
  const { begin, end } = await lastRecord(file, format.hasQuotes);
  const record = await textAt(file, begin, Math.min(end - begin, MAX_RECORD_BYTES));
  const last = format.leadIn(record);
  if (!isExport || (end > 0 && last === undefined && record !== format.header)) {
    throw new OutputFault(`${path} is not an export in this format: it was left unchanged; name another file`);
  }
  await file.truncate(end);
  return end === 0 ? undefined : { last };
}

async function textAt(file: FileHandle, position: number, length: number): Promise<string> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, position);
  return buffer.toString('utf8', 0, bytesRead);
}

/** Returns where the last complete record of a file begins and ends. */
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
