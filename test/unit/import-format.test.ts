import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { IMPORT_FORMATS, type ImportLine } from '../../operator/import-format.ts';
import { HARD_TEXTS } from '../support/builders.ts';

const NOT_UTF8 = 'is not UTF-8: save the file in that encoding';

/** Reads the lines of a file in one format, in chunks of a size. */
async function linesOf(format: keyof typeof IMPORT_FORMATS, bytes: Buffer, size = bytes.length): Promise<ImportLine[]> {
  const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );
  return Array.fromAsync(IMPORT_FORMATS[format](Readable.from(chunks), 's1'));
}

const namesOf = (lines: readonly ImportLine[]) =>
  lines.map((each) => ('lead' in each ? each.lead.displayName : each.fault));

const FILES = {
  csv: (names: readonly string[]) => `displayName,email\n${names.map((name) => `${name},a@example.org\n`).join('')}`,
  ndjson: (names: readonly string[]) => names.map((displayName) => `${JSON.stringify({ displayName })}\n`).join(''),
} as const;

describe.each(['csv', 'ndjson'] as const)('a file of %s', (format) => {
  const fileOf = FILES[format];

  test('has the same lines in chunks of any size, with or without a byte order mark', async () => {
    const names = ['Jürgen', '山田太郎', '😀', 'Ada\u{2028}Lovelace'];
    for (const mark of ['', '\u{feff}']) {
      const bytes = Buffer.from(mark + fileOf(names));
      for (const size of [1, 2, 3, 5, bytes.length]) {
        expect(namesOf(await linesOf(format, bytes, size))).toEqual(names);
      }
    }
  });

  test('in another encoding has only those lines refused that are not UTF-8', async () => {
    const latin1 = Buffer.from(fileOf(['Ada', 'Jürgen', 'Grace']), 'latin1');

    const lines = await linesOf(format, latin1);

    expect(namesOf(lines)).toEqual(['Ada', NOT_UTF8, 'Grace']);
    expect(lines[1]?.line).toBe(format === 'csv' ? 3 : 2);
  });

  test('that cannot be read to its end fails with the reason', async () => {
    async function* failing() {
      yield Buffer.from(fileOf(['Ada']));
      throw new Error('the disk is gone');
    }
    const lines = IMPORT_FORMATS[format](Readable.from(failing()), 's1');
    await expect(Array.fromAsync(lines)).rejects.toThrow('the disk is gone');
  });

  test('that is empty, or shorter than a byte order mark, has no leads', async () => {
    expect(await linesOf(format, Buffer.alloc(0), 1)).toEqual([]);
    expect(await linesOf(format, Buffer.from('\n'))).toEqual([]);
  });
});

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
