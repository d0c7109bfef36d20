import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

/**
 * The text of an import file. Its pieces are split at characters that are the same in all encodings; what is between
 * them is decoded separately, so that a name in another encoding costs only its own line.
 */
export interface ImportText {
  readonly pieces: AsyncIterable<string>;
  /** Returns the characters of a part of the text; undefined: it is not in the encoding of the file. */
  decode(part: string): string | undefined;
  /** What is wrong with a line that cannot be decoded. */
  readonly undecodable: string;
}

const UTF8_MARK = Buffer.from('\u{feff}');
const UTF16_LE_MARK = Buffer.from([0xff, 0xfe]);
const UTF16_BE_MARK = Buffer.from([0xfe, 0xff]);

/** The half of a surrogate pair: no text in UTF-16 may have it alone. */
const HALF = '\u{d800}';

/** Reads a file in UTF-8, or in UTF-16 if its byte order mark says so. @throws the error of reading */
export async function importText(input: Readable): Promise<ImportText> {
  const chunks: AsyncIterator<Buffer> = input[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  while (head.length < UTF8_MARK.length) {
    const { value, done } = await chunks.next();
    if (done) break;
    head = Buffer.concat([head, value]);
  }
  const marks = [UTF8_MARK, UTF16_LE_MARK, UTF16_BE_MARK];
  const mark = marks.find((each) => head.subarray(0, each.length).equals(each));
  const bytes = concatenated(head.subarray(mark?.length ?? 0), chunks);
  return mark === undefined || mark === UTF8_MARK
    ? {
        // Each byte as a character.
        pieces: decoded(bytes, new StringDecoder('latin1')),
        decode: utf8Of,
        undecodable: 'is not UTF-8: save the file in that encoding',
      }
    : {
        pieces: decoded(bytes, utf16Decoder(mark === UTF16_BE_MARK)),
        decode: (part) => (part.isWellFormed() ? part : undefined),
        undecodable: 'is not UTF-16, as the beginning of the file says: save the file in UTF-8',
      };
}

async function* concatenated(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield head;
  yield* { [Symbol.asyncIterator]: () => rest };
}

async function* decoded(
  bytes: AsyncIterable<Buffer>,
  decoder: { write(chunk: Buffer): string; end(): string },
): AsyncGenerator<string> {
  for await (const chunk of bytes) yield decoder.write(chunk);
  yield decoder.end();
}

function utf16Decoder(isBigEndian: boolean) {
  const decoder = new StringDecoder('utf16le');
  let odd = Buffer.alloc(0);
  return {
    write(chunk: Buffer): string {
      const all = Buffer.concat([odd, chunk]);
      odd = all.subarray(all.length - (all.length % 2));
      const even = all.subarray(0, all.length - odd.length);
      return decoder.write(isBigEndian ? even.swap16() : even);
    },
    // A file that was cut within a character must not look whole.
    end: () => decoder.end() + (odd.length > 0 ? HALF : ''),
  };
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function utf8Of(bytes: string): string | undefined {
  try {
    return UTF8.decode(Buffer.from(bytes, 'latin1'));
  } catch {
    return undefined;
  }
}
