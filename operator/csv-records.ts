import type { Readable } from 'node:stream';
import { CommandFault } from './command.ts';
import { linesBehindMark } from './lines.ts';

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

/** Matches a line, without its end, that leaves a quote open if one was open at its beginning. */
const OPEN_BEHIND: Readonly<Record<Delimiter, RegExp>> = {
  ',': /^(?:[^"]|"")*(?:",(?:[^",]*,)*"(?:[^"]|"")*)*$/,
  ';': /^(?:[^"]|"")*(?:";(?:[^";]*;)*"(?:[^"]|"")*)*$/,
  '\t': /^(?:[^"]|"")*(?:"\t(?:[^"\t]*\t)*"(?:[^"]|"")*)*$/,
};

const UNCLOSED = { fault: 'has a quote that nothing closes' };
const TOO_LONG = { fault: `is longer than ${MAX_RECORD_LENGTH} bytes` };

/** Returns a line without its end, which may be missing or incomplete. */
const withoutEnd = (text: string): string => text.replace(/\r?\n$|\r$/, '');

/**
 * Reads the records of a UTF-8 CSV file (RFC 4180). The header is the first record with text. Its most frequent delimiter separates cells,
 * and it sets their number per record. Cells after its last name must be empty and are dropped, as are records without text. A fault costs
 * only its own record's lines. Libraries that can do that also cut cells off, so none is used here.
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
    // Without a quote the record goes on. Before the header is known, the steps below would read it all for each of its lines.
    if (mayGoOn && line > begin && !next.includes('"')) continue;
    const delimiter = header?.delimiter ?? delimiterIn(text);
    // Parses a record only with its first and last line, so the cost grows with its length.
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

/** Returns the most frequent delimiter of a header, outside quotes. */
function delimiterIn(header: string): Delimiter {
  const unquoted = header.replaceAll(/"[^"]*"/g, '');
  const countCells = (delimiter: string) => unquoted.split(delimiter).length;
  return (Object.keys(CELLS) as Delimiter[]).reduce((best, each) =>
    countCells(each) > countCells(best) ? each : best,
  );
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes cells. Text in another encoding costs only its own record. */
function decoded(cells: readonly string[]): Cells {
  try {
    return { cells: cells.map((cell) => UTF8.decode(Buffer.from(cell, 'latin1'))) };
  } catch {
    return { fault: 'is not UTF-8: save the file in that encoding' };
  }
}
