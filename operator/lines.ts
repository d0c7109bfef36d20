import { CommandFault } from './command.ts';

const UTF16_MARKS = ['\xff\xfe', '\xfe\xff'];
const COMPRESSED = ['\x1f\x8b', 'PK\x03\x04', 'BZh', '\xfd7zXZ', '\x28\xb5\x2f\xfd'];

/** @param beginning of a file, each byte as a character @throws CommandFault when it is compressed or UTF-16 */
function refuseOtherForms(beginning: string): void {
  const isMarkedBy = (marks: readonly string[]) => marks.some((mark) => beginning.startsWith(mark));
  if (isMarkedBy(UTF16_MARKS))
    throw new CommandFault('the file is UTF-16: save it as UTF-8, which spreadsheets call "CSV UTF-8"');
  if (isMarkedBy(COMPRESSED)) throw new CommandFault('the file is compressed, like .gz or .zip: decompress it');
}

/** Yields the pieces of a text, each byte as a character. @throws CommandFault where the text could hide a secret */
export async function* readPieces(input: NodeJS.ReadableStream): AsyncGenerator<string> {
  let [beginning, end] = ['', ''];
  for await (const chunk of input) {
    const piece = (chunk as Buffer).toString('latin1');
    beginning = (beginning + piece).slice(0, 6);
    refuseOtherForms(beginning);
    // UTF-16 without a mark, for example appended to a log.
    if ((end + piece).includes('l\0i\0k\0_')) throw new CommandFault('the file has keys in UTF-16: save it as UTF-8');
    yield piece;
    end = (end + piece).slice(-6);
  }
}

/**
 * Yields the lines of an input with their ends and without a byte order mark, each byte as a character.
 *
 * @param maxLength a longer line may lose its middle, but keeps more than this many bytes
 * @throws CommandFault when it is compressed or UTF-16
 */
export async function* readLines(input: NodeJS.ReadableStream, maxLength: number): AsyncGenerator<string> {
  let isFirst = true;
  for await (const line of splitLines(input, maxLength)) {
    if (isFirst) refuseOtherForms(line);
    yield isFirst ? line.replace(/^\xef\xbb\xbf/, '') : line;
    isFirst = false;
  }
}

async function* splitLines(input: NodeJS.ReadableStream, maxLength: number): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of input) {
    const lines = (rest + (chunk as Buffer).toString('latin1')).split(/(?<=\n)/);
    rest = lines.at(-1)?.endsWith('\n') ? '' : (lines.pop() ?? '');
    yield* lines;
    rest = rest.slice(0, maxLength + 1);
  }
  if (rest !== '') yield rest;
}
