import { fstatSync, writeFileSync } from 'node:fs';
import { errorSummary } from '../common/error-summary.ts';
import { printableLines } from '../common/printable.ts';
import { CommandFault } from './command.ts';

/** Reports that standard output cannot be written, with a message for the operator. */
export class OutputFault extends CommandFault {
  /** Whether the reader closed the pipe. */
  readonly isClosedPipe: boolean;

  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.isClosedPipe = (cause as NodeJS.ErrnoException | undefined)?.code === 'EPIPE';
  }
}

/** Writes a text to standard output, with control characters escaped on a terminal. @throws OutputFault */
export async function print(text: string): Promise<void> {
  const { stdout } = process;
  try {
    // On a full disk, the stream reports a truncated write to a file as complete.
    if (fstatSync(stdout.fd).isFile()) return writeFileSync(stdout.fd, text);
    const escaped = stdout.isTTY ? printableLines(text.replaceAll('\r\n', '\n')) : text;
    await new Promise<void>((resolve, reject) => {
      stdout.write(escaped, (error) => (error ? reject(error) : resolve()));
    });
  } catch (error) {
    throw new OutputFault(`the standard output: ${errorSummary(error)}`, error);
  }
}
