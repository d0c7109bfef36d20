import { execFileSync, spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { csvReader, type ReadRecord, readRecords } from '../../operator/import-records.ts';
import { times } from '../support/builders.ts';
import { describeIf } from '../support/servers.ts';

/** Reads the records of a text in pieces of a size. */
async function recordsOf(text: string, size = Math.max(text.length, 1)): Promise<ReadRecord<string[]>[]> {
  async function* pieces() {
    for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
  }
  return Array.fromAsync(readRecords(pieces(), csvReader()));
}

const cellsOf = (records: readonly ReadRecord<string[]>[]) =>
  records.map((record) => ('value' in record ? record.value : record.fault));

// @proves imports-4
describe('a record of CSV', () => {
  test.each([
    [',', 'a,b,c;d\te'],
    [';', 'a;b;c,d'],
    ['\t', 'a\tb\tc,d'],
    [';', 'a;"b,c,d,e"'],
  ])('is separated by what the header has most of: %j in %j', async (delimiter, header) => {
    const count = header.split(delimiter).length;
    const row = times(count, (index) => `${index}`).join(delimiter);
    expect(cellsOf(await recordsOf(`\n${header}\n${row}`, 1))).toEqual([[''], expect.anything(), row.split(delimiter)]);
  });

  test.each([
    ['Ada "the" Countess,a@b', /quote within a cell/],
    ['Ada, "a@b"', /quote within a cell/],
    ['"Ada "the" Countess",a@b', /behind the closing quote/],
    ['"Ada,a@b', /nothing closes|behind the closing quote/],
    ['Ada,a@b,Berlin', /must have 2 cells, as the header, and has 3/],
    ['Ada', /must have 2 cells, as the header, and has 1/],
  ])('whose quotes are wrong costs itself only, in pieces of any size: %j', async (bad, fault) => {
    const good = times(249, (index) => [`Name, ${index}`, `a${index}@b`]);
    // The rows after it have no quotes, or pair theirs with its own.
    const bare = good.map(([name, email]) => `${name?.replace(',', '')},${email}`);
    const quoted = good.map(([name, email]) => `"${name}","${email}"`);
    for (const [at, rows] of [0, 1, 100, 249].flatMap((at) => [[at, bare] as const, [at, quoted] as const])) {
      const text = ['name,email', ...rows.slice(0, at), bad, ...rows.slice(at), ',,,', ''].join('\r\n');
      for (const size of [1, 2, 1000, text.length]) {
        const records = await recordsOf(text, size);
        const faults = records.filter((record) => 'fault' in record);
        expect(faults).toEqual([{ line: at + 2, fault: expect.stringMatching(fault) }]);
        expect(records.flatMap((record) => ('value' in record ? [record.value] : []))).toEqual([
          ['name', 'email'],
          ...(rows === bare ? good.map(([name, email]) => [name?.replace(',', ''), email]) : good),
          ['', '', '', ''],
        ]);
      }
    }
  });

  test('has no text behind the last name of the header', async () => {
    const records = await recordsOf('a,b,,\n1,2,,\n1,2,3,\n,2,,\n,,,\n');
    const fault = 'has text behind the last column that the header names';
    expect(cellsOf(records)).toEqual([['a', 'b'], ['1', '2'], fault, ['', '2'], ['', '', '', '']]);
  });

  test('with a quote that a later record closes costs only these two', async () => {
    const good = times(9, (index) => `Name ${index},a${index}@b`);
    const records = await recordsOf(['name,email', '"Ada,a@b', ...good, 'Zed,z@b"', ...good].join('\n'));
    expect(records.flatMap(({ line, ...record }) => ('fault' in record ? [line] : []))).toEqual([2, 12]);
    expect(records).toHaveLength(21);
  });

  test('that never ends is given up, and the rest of the file is read', async () => {
    const long = 'x'.repeat(1_000_000);
    for (const bad of [`"${long}`, long]) {
      const records = await recordsOf(`a,b\n1,2\n${bad}\n3,4\r\n"5,6`, 65_536);
      expect(records).toEqual([
        { line: 1, value: ['a', 'b'] },
        { line: 2, value: ['1', '2'] },
        { line: 3, fault: expect.stringMatching(/has no end within/) },
        { line: 4, value: ['3', '4'] },
        { line: 5, fault: expect.stringMatching(/nothing closes/) },
      ]);
    }
  });
});

const PYTHON = `
import csv, io, json, sys

def rows(text):
    found = []
    try:
        for row in csv.reader(io.StringIO(text, newline=''), strict=True):
            found.append(row or [''])
    except csv.Error:
        found.append(None)
    return found

print(json.dumps([rows(text) for text in json.load(sys.stdin)]))
`;

const hasPython = spawnSync('python3', ['--version']).status === 0;

// @proves imports-4
describeIf(hasPython, 'CSV as Python reads it', 'install python3', () => {
  test('random files have the same records; where Python fails, there is a fault', async () => {
    const part = fc.constantFrom(
      'a',
      'é',
      '山',
      ' ',
      ';',
      '\t',
      "'",
      ',',
      ',',
      '"',
      '"',
      '""',
      '\r',
      '\n',
      '\r\n',
      '","',
      '\n"',
    );
    const bodies = fc.sample(fc.array(part, { maxLength: 24 }), { numRuns: 20_000, seed: Date.now() % 2 ** 31 });
    const texts = bodies.map((parts) => `h,i\n${parts.join('')}`);
    const input = JSON.stringify(texts);
    const theirs: (string[] | null)[][] = JSON.parse(
      execFileSync('python3', ['-c', PYTHON], { input, encoding: 'utf8', maxBuffer: 1e9 }),
    );
    let compared = 0;
    for (const [index, text] of texts.entries()) {
      const records = await recordsOf(text, 1 + (index % 7));
      const expected = theirs[index];
      const firstFault = records.findIndex((record) => 'fault' in record);
      const before = firstFault === -1 ? records : records.slice(0, firstFault);
      const fault = records[firstFault];
      // Python takes a quote within an unquoted cell as it is, and any number of cells.
      const isOnlyOurs = fault && 'fault' in fault && /^(?:has a quote within|must have \d+ cells)/.test(fault.fault);
      const ours: (string[] | null)[] = before.map((record) => ('value' in record ? record.value : null));
      if (fault && !isOnlyOurs) ours.push(null);
      expect({ text, cells: ours }).toEqual({ text, cells: isOnlyOurs ? expected?.slice(0, before.length) : expected });
      if (!isOnlyOurs) compared += 1;
    }
    expect(compared).toBeGreaterThan(5000);
  }, 60_000);
});
