import { describe, expect, test } from 'vitest';
import { explain, type Observed } from './linearizable.ts';

/** A read of a number within a span; `writes` is a write, and `mayHaveWritten` one with an unknown outcome. */
const reads = (begin: number, end: number, value: number): Observed<number> => ({
  span: { begin, end },
  description: `reads ${value}`,
  guess: undefined,
  isRead: true,
  next: (state) => (state === value ? state : undefined),
});
const writes = (begin: number, end: number, value: number): Observed<number> => ({
  ...reads(begin, end, value),
  description: `writes ${value}`,
  isRead: false,
  next: () => value,
});
const mayHaveWritten = (begin: number, value: number): Observed<number> => ({
  ...writes(begin, Number.POSITIVE_INFINITY, value),
  guess: `set ${value}`,
});

/** Returns the text of an unexplained history; undefined when an order exists. */
function found(...observed: Observed<number>[]): string | undefined {
  const verdict = explain(observed, 0, String);
  expect(verdict.is).not.toBe('given up');
  return verdict.is === 'unexplained' ? verdict.report : undefined;
}

describe('an order of what was observed', () => {
  test('is found for sequential operations', () => {
    expect(found(reads(0, 1, 0), writes(2, 3, 1), reads(4, 5, 1))).toBeUndefined();
  });

  test('is not found for a read before the write of its value, or after a later write', () => {
    expect(found(reads(0, 1, 1), writes(2, 3, 1))).toContain('reads 1');
    expect(found(writes(0, 1, 1), writes(2, 3, 2), reads(4, 5, 1))).toContain('reads 1');
  });

  test('is found among all orders of concurrent operations', () => {
    expect(found(writes(0, 10, 1), writes(0, 10, 2), reads(1, 2, 2), reads(3, 4, 1))).toBeUndefined();
    expect(found(writes(0, 10, 1), writes(0, 10, 2), reads(1, 2, 2), reads(3, 4, 1), reads(5, 6, 2))).toContain(
      'reads 2',
    );
  });

  test('is found for a write of the current value, before or after another write', () => {
    expect(found(writes(0, 1, 1), writes(2, 9, 2), writes(3, 9, 1), reads(10, 11, 1))).toBeUndefined();
    expect(found(writes(0, 1, 1), writes(2, 9, 2), writes(3, 9, 1), reads(10, 11, 2))).toBeUndefined();
  });

  test('is not reported as missing when the search has too many states', () => {
    const guesses = Array.from({ length: 20 }, (_, value) => mayHaveWritten(0, value + 1));
    expect(found(...guesses.slice(0, 3), reads(1, 2, -1))).toContain('reads -1');
    expect(explain([...guesses, reads(1, 2, -1)], 0, String)).toEqual({ is: 'given up' });
  });

  test('may have an operation without a known outcome at any later time, once or never', () => {
    expect(found(mayHaveWritten(0, 1), reads(1, 2, 0), reads(100, 101, 1))).toBeUndefined();
    expect(found(mayHaveWritten(0, 1), reads(1, 2, 0), reads(100, 101, 0))).toBeUndefined();
    expect(found(mayHaveWritten(0, 1), reads(1, 2, 1), writes(3, 4, 0), reads(5, 6, 1))).toContain('reads 1');
    expect(
      found(mayHaveWritten(0, 1), mayHaveWritten(0, 1), reads(1, 2, 1), writes(3, 4, 0), reads(5, 6, 1)),
    ).toBeUndefined();
    expect(found(reads(0, 1, 1), mayHaveWritten(2, 1))).toContain('reads 1');
  });
});
