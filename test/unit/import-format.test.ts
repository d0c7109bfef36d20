import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { IMPORT_FORMATS, type ImportLine, type ImportReading } from '../../operator/import-format.ts';
import { HARD_TEXTS } from '../support/builders.ts';

const NOT_UTF8 = 'is not UTF-8: save the file in that encoding';

const READING: ImportReading = { studioId: 's1', fields: new Map(), ignoresOthers: false, onIgnored: () => {} };

/** Reads the lines of a file in one format, in chunks of a size. */
async function linesOf(
  format: keyof typeof IMPORT_FORMATS,
  bytes: Buffer,
  size = bytes.length,
  reading = READING,
): Promise<ImportLine[]> {
  const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );
  return Array.fromAsync(IMPORT_FORMATS[format](Readable.from(chunks), reading));
}

const namesOf = (lines: readonly ImportLine[]) =>
  lines.map((each) => ('lead' in each ? each.lead.displayName : each.fault));

const FILES = {
  csv: (names: readonly string[]) => `displayName,email\n${names.map((name) => `${name},a@example.org\n`).join('')}`,
  ndjson: (names: readonly string[]) => names.map((displayName) => `${JSON.stringify({ displayName })}\n`).join(''),
} as const;

describe.each(['csv', 'ndjson'] as const)('a file of %s', (format) => {
  const fileOf = FILES[format];

  // @proves imports-5
  test('has the same lines in chunks of any size, with or without a byte order mark', async () => {
    const names = ['Jürgen', '山田太郎', '😀', 'Ada\u{2028}Lovelace'];
    for (const mark of ['', '\u{feff}']) {
      const bytes = Buffer.from(mark + fileOf(names));
      for (const size of [1, 2, 3, 5, bytes.length]) {
        expect(namesOf(await linesOf(format, bytes, size))).toEqual(names);
      }
    }
  });

  // @proves imports-5
  test('in another encoding has only those lines refused that are not UTF-8', async () => {
    const latin1 = Buffer.from(fileOf(['Ada', 'Jürgen', 'Grace']), 'latin1');

    const lines = await linesOf(format, latin1);

    expect(namesOf(lines)).toEqual(['Ada', NOT_UTF8, 'Grace']);
    expect(lines[1]?.line).toBe(format === 'csv' ? 3 : 2);
  });

  test('that is empty, or shorter than a byte order mark, has no leads; CSV without a header is refused', async () => {
    for (const text of ['', '\n', '\u{feff}', '\r\n\n']) {
      const lines = linesOf(format, Buffer.from(text), 1);
      await (format === 'ndjson'
        ? expect(lines).resolves.toEqual([])
        : expect(lines).rejects.toThrow('the file is empty: the first line must name its columns'));
    }
  });

  // @proves imports-5
  test('in UTF-16, of either byte order, has the same lines as in UTF-8; one that is cut within a character is refused', async () => {
    const names = ['Jürgen', '山田太郎', '😀', 'Ada\u{2028}Lovelace', '\u{2022}ĊĀ∊'];
    const little = Buffer.from(`\u{feff}${fileOf(names)}`, 'utf16le');
    for (const bytes of [little, Buffer.from(little).swap16()]) {
      for (const size of [1, 2, 3, 7, bytes.length]) {
        expect(namesOf(await linesOf(format, bytes, size))).toEqual(names);
        const [last] = (await linesOf(format, bytes.subarray(0, -3), size)).slice(-1);
        expect(last).toEqual({ line: format === 'csv' ? 6 : 5, fault: expect.stringContaining('is not UTF-16') });
      }
    }
    const half = Buffer.from(`\u{feff}${fileOf(['Ada', 'X', 'Grace']).replace('X', '\u{d83d}')}`, 'utf16le');
    expect(namesOf(await linesOf(format, half))).toEqual(['Ada', expect.stringContaining('is not UTF-16'), 'Grace']);
  });

  test('has lines that end with CRLF, LF or CR, all of them in one file, counted in quotes, too', async () => {
    const names = ['A', 'B', 'C', 'D', 'E', 'F'];
    const ends = ['\r\n', '\n', '\r'];
    for (const shift of [0, 1, 2]) {
      const [first = '', ...rest] = fileOf(names).split('\n');
      const text = rest.reduce((lines, line, index) => lines + ends[(index + shift) % 3] + line, first);
      for (const size of [1, 2, text.length]) {
        const lines = await linesOf(format, Buffer.from(text), size);
        expect(namesOf(lines)).toEqual(names);
        expect(lines.map(({ line }) => line)).toEqual(names.map((_, index) => index + (format === 'csv' ? 2 : 1)));
      }
    }
  });
});

// @proves imports-5
test('NDJSON restores any text unchanged', async () => {
  const aText = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom(...Object.values(HARD_TEXTS)));
  await fc.assert(
    fc.asyncProperty(fc.array(aText), async (names) => {
      const whole = names.map((name) => name.toWellFormed());
      expect(namesOf(await linesOf('ndjson', Buffer.from(FILES.ndjson(whole)), 7))).toEqual(whole);
    }),
    { numRuns: 200 },
  );
});
