import type { RecordReader } from './read-records.ts';

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
