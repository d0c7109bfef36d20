import type { Readable } from 'node:stream';
import { CommandFault } from './command.ts';
import { linesBehindMark } from './lines.ts';

type Cells = { readonly cells: readonly string[] } | { readonly fault: string };

/** A record of a file, or what is wrong with it, with the line on which it begins. */
export type CsvRecord = { readonly line: number } & Cells;

/** More than the longest record that can be imported; bytes. */
const MAX_RECORD_LENGTH = 256 * 1024;

/** A cell, in quotes or not, and what ends it, by what separates cells. Excel takes the semicolon in most of Europe. */
const CELLS = {
  ',': /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y,
  ';': /(?:"((?:[^"]|"")*)"|([^";]*))(;|$)/y,
  '\t': /(?:"((?:[^"]|"")*)"|([^"\t]*))(\t|$)/y,
} as const;
type Delimiter = keyof typeof CELLS;

/** A line, without its end, at whose end a quote is open, if one was at its beginning. */
const OPEN_BEHIND: Readonly<Record<Delimiter, RegExp>> = {
  ',': /^(?:[^"]|"")*(?:",(?:[^",]*,)*"(?:[^"]|"")*)*$/,
  ';': /^(?:[^"]|"")*(?:";(?:[^";]*;)*"(?:[^"]|"")*)*$/,
  '\t': /^(?:[^"]|"")*(?:"\t(?:[^"\t]*\t)*"(?:[^"]|"")*)*$/,
};

const UNCLOSED = { fault: 'has a quote that nothing closes' };
const TOO_LONG = { fault: `is longer than ${MAX_RECORD_LENGTH} bytes` };

/** Returns a line without its end, which a file may lack, or have half of. */
const withoutEnd = (text: string): string => text.replace(/\r?\n$|\r$/, '');

/**
 * Reads the records of a file of CSV (RFC 4180) in UTF-8. The header, the first record with a text, decides what separates
 * cells (the delimiter that it has most of), and how many each record has. Behind its last name all cells must be empty;
 * they are left out, and so are records without a text. A fault costs the lines of its own record. No library reads this:
 * those that go on behind a fault also cut cells off.
 *
 * @throws CommandFault for another encoding, or other ends of lines; the error of reading
 */
export async function* csvRecords(input: Readable): AsyncGenerator<CsvRecord> {
  let header: { readonly delimiter: Delimiter; readonly count: number; readonly named: number } | undefined;
  let [text, begin, line] = ['', 1, 0];
  for await (const next of linesBehindMark(input, MAX_RECORD_LENGTH)) {
    text += next;
    line += 1;
    const mayGoOn = text.length < MAX_RECORD_LENGTH;
    // Without a header, what follows would read the whole record for each of its lines.
    if (mayGoOn && line > begin && !next.includes('"')) continue;
    const delimiter = header?.delimiter ?? delimiterIn(text);
    // A record is parsed with its first line and its last one only: its cost is that of its length.
    if (mayGoOn && line > begin && OPEN_BEHIND[delimiter].test(withoutEnd(next))) continue;
    const record = next.length > MAX_RECORD_LENGTH ? TOO_LONG : cellsIn(withoutEnd(text), delimiter);
    if (mayGoOn && record === UNCLOSED) continue;
    const found = checked(record, delimiter);
    if (found) yield { line: begin, ...found };
    [text, begin] = ['', line + 1];
  }
  if (text !== '') yield { line: begin, ...throughLine(UNCLOSED.fault) };

  function checked(record: Cells, delimiter: Delimiter): Cells | undefined {
    if ('fault' in record) return throughLine(record.fault);
    const { cells } = record;
    if (!header && cells.some((cell) => /\r(?!\n)/.test(cell)))
      throw new CommandFault('its lines end with CR alone: save it with LF or CRLF');
    const used = cells.findLastIndex((cell) => cell !== '') + 1;
    if (used === 0) return undefined;
    header ??= { delimiter, count: cells.length, named: used };
    const { count, named } = header;
    if (cells.length !== count) {
      const fault = `must have ${count} cells, as the header, and has ${cells.length}`;
      return throughLine(`${fault}: is one with "${delimiter}" without quotes?`);
    }
    return used > named
      ? throughLine('has text behind the last column that the header names')
      : decoded(cells.slice(0, named));
  }

  function throughLine(fault: string): Cells {
    return { fault: line > begin ? `${fault} (to line ${line})` : fault };
  }
}

/** Returns the cells of a record. */
function cellsIn(text: string, delimiter: Delimiter): Cells {
  const cell = CELLS[delimiter];
  const cells: string[] = [];
  cell.lastIndex = 0;
  for (;;) {
    const at = cell.lastIndex;
    const [found, quoted, bare = '', end] = cell.exec(text) ?? [];
    if (found === undefined) return quoteFault(text, at);
    cells.push(quoted?.replaceAll('""', '"') ?? bare);
    if (end !== delimiter) return { cells };
  }
}

/** Returns what is wrong with the quotes of a cell. */
function quoteFault(text: string, at: number): Cells {
  if (text[at] !== '"')
    return { fault: 'has a quote within a cell: put the cell in quotes, and write the quote twice' };
  const isUnclosed =
    text
      .slice(at + 1)
      .replaceAll('""', '')
      .includes('"') === false;
  return isUnclosed
    ? UNCLOSED
    : { fault: 'has text behind the closing quote of a cell: write a quote within a cell twice' };
}

/** Returns what a header has most of, besides what is in quotes. */
function delimiterIn(header: string): Delimiter {
  const unquoted = header.replaceAll(/"[^"]*"/g, '');
  const countCells = (delimiter: string) => unquoted.split(delimiter).length;
  return (Object.keys(CELLS) as Delimiter[]).reduce((best, each) =>
    countCells(each) > countCells(best) ? each : best,
  );
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes cells, so that a name in another encoding costs only its own record. */
function decoded(cells: readonly string[]): Cells {
  try {
    return { cells: cells.map((cell) => UTF8.decode(Buffer.from(cell, 'latin1'))) };
  } catch {
    return { fault: 'is not UTF-8: save the file in that encoding' };
  }
}
