import type { Readable } from 'node:stream';
import { CommandFault } from './command.ts';
import { readLines } from './lines.ts';

type Cells = { readonly cells: readonly string[] } | { readonly fault: string };

/** A record of a file, or what is wrong with it, and the line where it begins. */
export type CsvRecord = { readonly line: number } & Cells;

/** Exceeds the longest record that can be imported; bytes. */
const MAX_RECORD_LENGTH = 256 * 1024;

/** By delimiter: a cell, quoted or not, and what ends it. Excel uses the semicolon in most of Europe. */
const CELLS = {
  ',': /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y,
  ';': /(?:"((?:[^"]|"")*)"|([^";]*))(;|$)/y,
  '\t': /(?:"((?:[^"]|"")*)"|([^"\t]*))(\t|$)/y,
} as const;
type Delimiter = keyof typeof CELLS;

/** Matches a line, without its end, that begins within quotes and also ends within quotes. */
const STAYS_QUOTED: Readonly<Record<Delimiter, RegExp>> = {
  ',': /^(?:[^"]|"")*(?:",(?:[^",]*,)*"(?:[^"]|"")*)*$/,
  ';': /^(?:[^"]|"")*(?:";(?:[^";]*;)*"(?:[^"]|"")*)*$/,
  '\t': /^(?:[^"]|"")*(?:"\t(?:[^"\t]*\t)*"(?:[^"]|"")*)*$/,
};

const UNCLOSED = { fault: 'has a quote that nothing closes' };
const UNCLOSED_FOR_TOO_LONG = { fault: `${UNCLOSED.fault} within ${MAX_RECORD_LENGTH} bytes` };
const TOO_LONG = { fault: `is longer than ${MAX_RECORD_LENGTH} bytes` };

/** Returns a line without its end, which may be missing or incomplete. */
const withoutEnd = (text: string): string => text.replace(/\r?\n$|\r$/, '');

/**
 * Reads the records of a UTF-8 CSV file (RFC 4180). The header is the first record with text: its most frequent delimiter separates cells,
 * and every record must have as many cells. Cells after its last name must be empty and are dropped, as are records without text. A fault
 * costs only its own record's lines. No library is used, because those that can do this also truncate cells.
 *
 * @throws CommandFault for another encoding, or other ends of lines; the error of reading
 */
export async function* readCsvRecords(input: Readable): AsyncGenerator<CsvRecord> {
  let header: { readonly delimiter: Delimiter; readonly count: number; readonly named: number } | undefined;
  let [text, begin, line] = ['', 1, 0];
  for await (const next of readLines(input, MAX_RECORD_LENGTH)) {
    text += next;
    line += 1;
    const mayContinue = text.length < MAX_RECORD_LENGTH;
    // A line without a quote cannot end a record of several lines. Otherwise each line of a long header would cost a parse of all before
    // it.
    if (mayContinue && line > begin && !next.includes('"')) continue;
    const delimiter = header?.delimiter ?? delimiterIn(text);
    // Parses a record only with its first and last line, so the cost grows with its length.
    if (mayContinue && line > begin && STAYS_QUOTED[delimiter].test(withoutEnd(next))) continue;
    const record = next.length > MAX_RECORD_LENGTH ? TOO_LONG : cellsIn(withoutEnd(text), delimiter);
    if (mayContinue && record === UNCLOSED) continue;
    const found = checked(record === UNCLOSED ? UNCLOSED_FOR_TOO_LONG : record, delimiter);
    if (found) yield { line: begin, ...found };
    [text, begin] = ['', line + 1];
  }
  if (text !== '') yield { line: begin, ...faultToLine(UNCLOSED.fault) };

  function checked(record: Cells, delimiter: Delimiter): Cells | undefined {
    if ('fault' in record) return faultToLine(record.fault);
    const { cells } = record;
    if (!header && cells.some((cell) => /\r(?!\n)/.test(cell)))
      throw new CommandFault('its lines end with CR alone: save it with LF or CRLF line ends');
    const used = cells.findLastIndex((cell) => cell !== '') + 1;
    if (used === 0) return undefined;
    header ??= { delimiter, count: cells.length, named: used };
    const { count, named } = header;
    if (cells.length !== count) {
      const fault = `must have ${count} cells, as the header, and has ${cells.length}`;
      return faultToLine(`${fault}: is one with "${delimiter}" without quotes?`);
    }
    return used > named
      ? faultToLine('has text after the last column that the header names')
      : decodeCells(cells.slice(0, named));
  }

  function faultToLine(fault: string): Cells {
    return { fault: line > begin ? `${fault} (to line ${line})` : fault };
  }
}

function cellsIn(text: string, delimiter: Delimiter): Cells {
  const cell = CELLS[delimiter];
  const cells: string[] = [];
  cell.lastIndex = 0;
  for (;;) {
    const start = cell.lastIndex;
    const [found, quoted, bare = '', end] = cell.exec(text) ?? [];
    if (found === undefined) return quoteFault(text, start);
    cells.push(quoted?.replaceAll('""', '"') ?? bare);
    if (end !== delimiter) return { cells };
  }
}

function quoteFault(text: string, start: number): Cells {
  if (text[start] !== '"')
    return { fault: 'has a quote within a cell: put the cell in quotes, and write the quote twice' };
  const isUnclosed =
    text
      .slice(start + 1)
      .replaceAll('""', '')
      .includes('"') === false;
  return isUnclosed
    ? UNCLOSED
    : { fault: 'has text after the closing quote of a cell: write a quote within a cell twice' };
}

/** Returns the most frequent delimiter of a header, outside quotes. */
function delimiterIn(header: string): Delimiter {
  const unquoted = header.replaceAll(/"[^"]*"/g, '');
  const countCells = (delimiter: string) => unquoted.split(delimiter).length;
  return (Object.keys(CELLS) as Delimiter[]).reduce((best, each) =>
    countCells(each) > countCells(best) ? each : best,
  );
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes cells. Text in another encoding makes only its own record faulty. */
function decodeCells(cells: readonly string[]): Cells {
  try {
    return { cells: cells.map((cell) => UTF8.decode(Buffer.from(cell, 'latin1'))) };
  } catch {
    return { fault: 'is not UTF-8: save the file in that encoding' };
  }
}
