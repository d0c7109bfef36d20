import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

/**
 * The text of an import file. Its pieces are split at characters that are the same in all encodings; what is between
 * them is decoded separately, so that a name in another encoding costs only its own line.
 */
interface ImportText {
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

/** A record of a file, or what is wrong with it, with the line on which it begins. */
export type ReadRecord<Value> = { readonly line: number } & ({ readonly value: Value } | { readonly fault: string });

/**
 * Reads the record that begins at a position of a text.
 *
 * @param isWhole whether the text has the end of the file
 * @returns the record, and where the next one begins; undefined: the text does not have all of it
 */
type RecordReader<Value> = (
  text: string,
  begin: number,
  isWhole: boolean,
) => { readonly value: Value; readonly end: number } | { readonly fault: string } | undefined;

/** More than the longest record that can be imported: what is longer has a quote that nothing closes. */
const MAX_RECORD_LENGTH = 256 * 1024;

const LINE_END = /\r\n?|\n/g;

/**
 * Reads the records of a file, piece by piece. Lines end with CRLF, LF or CR, also in one file. Behind a fault, reading
 * goes on with the next line: a quote that is missing must not cost the records after it.
 */
export async function* readRecords<Value>(
  pieces: AsyncIterable<string>,
  read: RecordReader<Value>,
): AsyncGenerator<ReadRecord<Value>> {
  let [text, at, line, isFaulty] = ['', 0, 1, false];
  for await (const { piece, isWhole } of withEnd(pieces)) {
    text = text.slice(at) + piece;
    at = 0;
    while (at < text.length) {
      const record = isFaulty ? restOfLine(text, at, isWhole) : read(text, at, isWhole);
      if (!record && text.length - at <= MAX_RECORD_LENGTH) break;
      if (!record || 'fault' in record) {
        if (!isFaulty) yield { line, fault: record?.fault ?? `has no end within ${MAX_RECORD_LENGTH} characters` };
        // Of a line without an end, nothing is kept but a character that may begin its line end.
        if (isFaulty) at = text.length - 1;
        isFaulty = true;
        continue;
      }
      if (!isFaulty) yield { line, value: record.value as Value };
      isFaulty = false;
      line += text.slice(at, record.end).match(LINE_END)?.length ?? 0;
      at = record.end;
    }
  }
}

export const restOfLine: RecordReader<string> = (text, begin, isWhole) => {
  LINE_END.lastIndex = begin;
  const found = LINE_END.exec(text);
  if (!found) return isWhole ? { value: text.slice(begin), end: text.length } : undefined;
  const [lineEnd] = found;
  // The other half of a CRLF may follow.
  if (lineEnd === '\r' && LINE_END.lastIndex === text.length && !isWhole) return undefined;
  return { value: text.slice(begin, found.index), end: LINE_END.lastIndex };
};

/** Yields each piece, and an empty one with the end. */
async function* withEnd(pieces: AsyncIterable<string>) {
  for await (const piece of pieces) yield { piece, isWhole: false };
  yield { piece: '', isWhole: true };
}

/** What may separate cells. Excel takes the semicolon in most of Europe. */
const DELIMITERS = [',', ';', '\t'] as const;

/** The beginning of the first record, as far as its quotes are paired. */
const HEAD = /(?:"[^"]*"|[^"\r\n])*/y;

/** The end of a cell without quotes. */
const CELL_END = /[",;\t\r\n]/g;

/**
 * Returns a reader of the cells of CSV (RFC 4180). The header, the first record with a text, decides what separates
 * them (the delimiter that it has most of), and how many each record has, unless all of its cells are empty. Behind
 * the last name of the header all cells must be empty; they are left out. No library reads this: those that go on behind
 * a fault also merge records with different line ends, and cut cells off.
 */
export function csvReader(): RecordReader<string[]> {
  let header: { readonly delimiter: string; readonly cells: number; readonly names: number } | undefined;
  return (text, begin, isWhole) => {
    const delimiter = header?.delimiter ?? delimiterAt(text, begin, isWhole);
    const record = delimiter === undefined ? undefined : cellsAt(text, begin, isWhole, delimiter);
    if (!record || 'fault' in record) return record;
    const { value: cells } = record;
    const used = cells.findLastIndex((cell) => cell !== '') + 1;
    if (used === 0) return record;
    header ??= { delimiter: delimiter as string, cells: cells.length, names: used };
    if (cells.length !== header.cells) {
      const fault = `must have ${header.cells} cells, as the header, and has ${cells.length}`;
      return { fault: `${fault}: is one with "${header.delimiter}" without quotes?` };
    }
    if (used > header.names) return { fault: 'has text behind the last column that the header names' };
    return { ...record, value: cells.slice(0, header.names) };
  };
}

/** Returns the delimiter of the header; undefined: the text does not have all of it. */
function delimiterAt(text: string, begin: number, isWhole: boolean): string | undefined {
  HEAD.lastIndex = begin;
  const [head = ''] = HEAD.exec(text) ?? [];
  if (begin + head.length === text.length && !isWhole) return undefined;
  const unquoted = head.replaceAll(/"[^"]*"/g, '');
  const counts = DELIMITERS.map((each) => unquoted.split(each).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))];
}

function cellsAt(text: string, begin: number, isWhole: boolean, delimiter: string): ReturnType<RecordReader<string[]>> {
  const cells: string[] = [];
  for (let at = begin; ; at += 1) {
    if (text[at] === '"') {
      const end = closingQuote(text, at);
      // Behind the last character that is known, another quote may follow.
      if (end === undefined || (end === text.length - 1 && !isWhole)) {
        return isWhole ? { fault: 'has a quote that nothing closes' } : undefined;
      }
      cells.push(text.slice(at + 1, end).replaceAll('""', '"'));
      at = end + 1;
    } else {
      const end = cellEnd(text, at, delimiter);
      if (end === undefined && !isWhole) return undefined;
      cells.push(text.slice(at, end));
      at = end ?? text.length;
    }
    switch (text[at]) {
      case delimiter:
        continue;
      case undefined:
        return { value: cells, end: at };
      case '\n':
        return { value: cells, end: at + 1 };
      case '\r':
        if (at + 1 === text.length && !isWhole) return undefined;
        return { value: cells, end: text[at + 1] === '\n' ? at + 2 : at + 1 };
      case '"':
        return { fault: 'has a quote within a cell: put the cell in quotes, and write the quote twice' };
      default:
        return { fault: 'has text behind the closing quote of a cell: write a quote within a cell twice' };
    }
  }
}

/** Returns where the quotes of a cell end; undefined: not in this text. */
function closingQuote(text: string, opening: number): number | undefined {
  for (let at = text.indexOf('"', opening + 1); at !== -1; at = text.indexOf('"', at + 2)) {
    if (text[at + 1] !== '"') return at;
  }
  return undefined;
}

function cellEnd(text: string, begin: number, delimiter: string): number | undefined {
  CELL_END.lastIndex = begin;
  for (let found = CELL_END.exec(text); found; found = CELL_END.exec(text)) {
    const [character] = found;
    if (character === delimiter || !DELIMITERS.includes(character as ',')) return found.index;
  }
  return undefined;
}
