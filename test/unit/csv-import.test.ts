import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { type ImportLine, readCsvLeads } from '../../operator/csv-import.ts';
import { type CsvRecord, readCsvRecords } from '../../operator/csv-records.ts';
import { times } from '../support/builders.ts';

const NOT_UTF8 = 'is not UTF-8: save the file in that encoding';

const READING = { studioId: 's1', fields: new Map(), ignoresOthers: false, onIgnored: () => {} };

/** Reads a file in chunks of a size. */
function inChunks(bytes: Buffer, size = Math.max(bytes.length, 1)): Readable {
  const count = Math.ceil(bytes.length / size);
  return Readable.from(times(count, (index) => bytes.subarray(index * size, (index + 1) * size)));
}

const readLeads = (bytes: Buffer, size?: number): Promise<ImportLine[]> =>
  Array.fromAsync(readCsvLeads(inChunks(bytes, size), READING));
const listRecords = (text: string, size?: number): Promise<CsvRecord[]> =>
  Array.fromAsync(readCsvRecords(inChunks(Buffer.from(text), size)));

const listNames = (lines: readonly ImportLine[]) =>
  lines.map((each) => ('lead' in each ? each.lead.displayName : each.fault));
const listCells = (records: readonly CsvRecord[]) =>
  records.map((record) => ('cells' in record ? record.cells : record.fault));

const makeFile = (names: readonly string[]) =>
  `displayName,email\n${names.map((name) => `${name},a@example.org\n`).join('')}`;

describe('a file', () => {
  // @proves imports-4
  test('a CSV file has the same lines in chunks of any size, with or without a byte order mark', async () => {
    const names = ['Jürgen', '山田太郎', '😀', 'Ada\u{2028}Lovelace'];
    for (const mark of ['', '\u{feff}']) {
      const bytes = Buffer.from(mark + makeFile(names));
      for (const size of [1, 2, 3, 5, bytes.length]) expect(listNames(await readLeads(bytes, size))).toEqual(names);
    }
  });

  // @proves imports-4
  test('a CSV file in another encoding loses only the lines that are not UTF-8', async () => {
    const lines = await readLeads(Buffer.from(makeFile(['Ada', 'Jürgen', 'Grace']), 'latin1'));

    expect(listNames(lines)).toEqual(['Ada', NOT_UTF8, 'Grace']);
    expect(lines[1]?.line).toBe(3);
  });

  // @proves imports-4
  test.each(
    ['id', 'phone'].flatMap((column) => ['4.91512E+11', '4,91512E+11', '4E+11', '4.9e+11'].map((cut) => [column, cut])),
  )('a %s that a spreadsheet cut to %s is refused only in its own line', async (column, cut) => {
    const values = { displayName: 'Ada', id: 'a-1', phone: '+49 1512 3456789', [column ?? '']: `"${cut}"` };
    const names = Object.keys(values).join();
    const lines = await readLeads(Buffer.from(`${names}\n${Object.values(values).join()}\nGrace,E+1,030 12345\n`));
    expect(listNames(lines)).toEqual([
      expect.stringMatching(`^${column} is a number that a spreadsheet has cut: `),
      'Grace',
    ]);
    expect(listNames(lines)[0]).not.toContain(cut);
  });

  // @proves imports-4
  test('a UTF-16 CSV file of either byte order is refused with the remedy', async () => {
    const little = Buffer.from(`\u{feff}${makeFile(['Ada'])}`, 'utf16le');
    for (const bytes of [little, Buffer.from(little).swap16()]) {
      for (const size of [1, bytes.length]) {
        await expect(readLeads(bytes, size)).rejects.toThrow('the file is UTF-16: save it as UTF-8');
      }
    }
  });

  test('a CSV file that is empty, or shorter than a byte order mark, is refused', async () => {
    for (const text of ['', '\n', '\u{feff}', '\r\n\n']) {
      await expect(readLeads(Buffer.from(text), 1)).rejects.toThrow(
        'the file is empty: the first line must name its columns',
      );
    }
  });

  test('lines of a CSV file may end with CRLF or LF, even mixed and in quotes', async () => {
    const names = ['A', 'B', '"C\r\nC"', 'D', '"E\nE"', 'F'];
    for (const text of [makeFile(names), makeFile(names).replace(/\n/g, '\r\n').replaceAll('\r\r', '\r')]) {
      const mixed = text.replace('A,a@example.org\n', 'A,a@example.org\r\n');
      for (const each of [text, mixed]) {
        for (const size of [1, 2, each.length]) {
          expect((await readLeads(Buffer.from(each), size)).map(({ line }) => line)).toEqual([2, 3, 4, 6, 7, 9]);
        }
      }
    }
  });

  test('a line that is too long is refused alone, in chunks of any size', async () => {
    for (const length of [270_000, 1_000_000]) {
      const long = 'x'.repeat(length);
      for (const bad of [`"${long}`, long, `${long},"`]) {
        for (const size of [65_536, 2_000_000]) {
          const records = await listRecords(`a,b\n1,2\n${bad}\n3,4\n`, size);
          expect(listCells(records)).toEqual([['a', 'b'], ['1', '2'], 'is longer than 262144 bytes', ['3', '4']]);
          expect(records[2]?.line).toBe(3);
        }
      }
    }
  });

  test('a CSV file whose lines end with CR alone is refused without quoting it', async () => {
    const text = 'displayName,email,x\rAda,a@example.org,y\rGrace,g@example.org,z\r';
    const fault = 'its lines end with CR alone: save it with LF or CRLF';
    for (const size of [1, text.length]) await expect(readLeads(Buffer.from(text), size)).rejects.toThrow(fault);
  });

  test('a CSV file that ends within a CRLF has the same leads', async () => {
    const [whole, cut] = await Promise.all([
      readLeads(Buffer.from('displayName,email,note\r\nAda,a@b.example,n\r\n')),
      readLeads(Buffer.from('displayName,email,note\r\nAda,a@b.example,n\r')),
    ]);
    expect(cut).toEqual(whole);
  });
});

// @proves imports-4
describe('a record of CSV', () => {
  test.each([
    [',', 'a,b,c;d\te'],
    [';', 'a;b;c,d'],
    ['\t', 'a\tb\tc,d'],
    [';', 'a;"b,c,d,e"'],
  ])('the delimiter of CSV is the most frequent one of the header: %j in %j', async (delimiter, header) => {
    const count = header.split(delimiter).length;
    const row = times(count, (index) => `${index}`).join(delimiter);
    expect(listCells(await listRecords(`\n${header}\n${row}`, 1))).toEqual([expect.anything(), row.split(delimiter)]);
  });

  test.each([
    ['Ada "the" Countess,a@b', /quote within a cell/],
    ['Ada, "a@b"', /quote within a cell/],
    ['"Ada "the" Countess",a@b', /after the closing quote/],
    ['"Ada" Lovelace,a@b', /after the closing quote/],
    ['Ada,a@b,Berlin', /must have 2 cells, as the header, and has 3/],
    ['Ada', /must have 2 cells, as the header, and has 1/],
  ])('a wrong CSV record is refused alone, in chunks of any size: %j', async (bad, fault) => {
    const good = times(249, (index) => [`Name, ${index}`, `a${index}@b`]);
    const rows = good.map(([name, email]) => `"${name}","${email}"`);
    for (const at of [0, 1, 100, 249]) {
      const text = ['name,email', ...rows.slice(0, at), bad, ...rows.slice(at), ',,,', ''].join('\r\n');
      for (const size of [1, 2, 1000, text.length]) {
        const records = await listRecords(text, size);
        const faults = records.filter((record) => 'fault' in record);
        expect(faults).toEqual([{ line: at + 2, fault: expect.stringMatching(fault) }]);
        expect(records.flatMap((record) => ('cells' in record ? [record.cells] : []))).toEqual([
          ['name', 'email'],
          ...good,
        ]);
      }
    }
  });

  test('a CSV record may have any text in quotes, but none after the last named column', async () => {
    const records = await listRecords('a,b,,\n1,"2 ""\r\n""",,\n1,2,3,\n,2,,\n,,,\n');
    const fault = 'has text after the last column that the header names';
    expect(listCells(records)).toEqual([['a', 'b'], ['1', '2 "\r\n"'], fault, ['', '2']]);
  });

  test('an unclosed quote in CSV is reported with all lines that it covers', async () => {
    const rows = times(9, (index) => `Name ${index},a${index}@b`);
    const closed = await listRecords(['name,email', '"Ada,a@b', ...rows, '"Zed",z@b', ...rows].join('\n'));
    expect(closed.filter((record) => 'fault' in record)).toEqual([
      { line: 2, fault: expect.stringMatching(/after the closing quote of a cell.*\(to line 12\)$/) },
    ]);
    expect(closed).toHaveLength(11);

    const open = await listRecords(['name,email', ...rows, '"Ada,a@b', ...rows].join('\n'));
    expect(open.slice(10)).toEqual([{ line: 11, fault: 'has a quote that nothing closes (to line 20)' }]);

    // Doubled quotes do not close a quoted text, which is read only once.
    const quotes = ['name,note', ...times(3, () => ['"Ada","', ...times(24_000, () => 'B,b@x,""'), '"']).flat()];
    const quoted = await listRecords(quotes.join('\n'), 65_536);
    expect(quoted.every((record) => 'cells' in record)).toBe(true);
    expect(quoted).toHaveLength(4);

    // The text after the longest record is read again.
    const long = times(40_000, (index) => `Name ${index},a${index}@b`);
    const records = await listRecords(['name,email', '"Ada,a@b', ...long].join('\n'), 65_536);
    const [, taken, next] = records;
    const last = Number(/nothing closes within 262144 bytes \(to line (\d+)\)/.exec(JSON.stringify(taken))?.[1]);
    expect([next?.line, records.length]).toEqual([last + 1, 40_002 - last + 2]);
  });
});
