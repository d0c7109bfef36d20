import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from './tools/processes.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** The rows of the tables: the bounded quantity, its bound, and the files. */
const rows = [...read('docs/reference/bounds.md').matchAll(/^\| `bounds-\d+` \| (.+) \|$/gm)].map(([, line = '']) => {
  const [what = '', bound = '', where = ''] = line.split(' | ');
  return { what, bound, where: quotedIn(where) };
});

/** Returns the texts in backticks. */
function quotedIn(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path);
}

const FACTORS: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 ** 2, s: 1000, ms: 1 };

/** Returns the named numbers of a bound with their documented values: bytes, milliseconds or a count. */
const numbersIn = (bound: string) =>
  [...bound.matchAll(/`([A-Z_]+)` \(([\d,]+)(?: (\w+))?\)/g)].map(([, name = '', digits = '', unit]) => ({
    name,
    value: Number(digits.replaceAll(',', '')) * (unit === undefined ? 1 : (FACTORS[unit] ?? Number.NaN)),
  }));

/** Returns the value of a constant in the code: a number, a product, or a fraction of another constant. */
function findNumber(name: string, files: readonly string[]): number {
  const sources = files.map(read).join('\n');
  const [, expression] = new RegExp(`^(?:export | +private )?const ${name} = (.+);$`, 'm').exec(sources) ?? [];
  if (expression === undefined) throw new Error(`${name} is not in ${files.join(' or ')}`);
  return expression
    .split(/ (?=[*/] )/)
    .map((part) => part.split(' '))
    .reduce((value, [operator = '', operand = operator]) => {
      const number = /^\d/.test(operand) ? Number(operand.replaceAll('_', '')) : findNumber(operand, files);
      return operator === '/' ? value / number : value * number;
    }, 1);
}

// @proves hostile-2
describe('docs/reference/bounds.md', () => {
  test('bounds.md has more than 25 rows and more than 25 named numbers', () => {
    expect(rows.length).toBeGreaterThan(25);
    expect(rows.flatMap(({ bound }) => numbersIn(bound)).length).toBeGreaterThan(25);
  });

  test.each(rows)('bounds.md states the values of the code: $what', ({ bound, where }) => {
    expect(where.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    expect(where).not.toEqual([]);
    const named = quotedIn(bound).filter((name) => /^[A-Z_]+$/.test(name) && !/^QUOTA_/.test(name));
    expect(numbersIn(bound).map(({ name }) => name)).toEqual(named);
    for (const { name, value } of numbersIn(bound))
      expect({ name, value }).toEqual({ name, value: findNumber(name, where) });
  });
});
