import { describe, expect, test } from 'vitest';
import { explain, type Observed } from './linearizable.ts';

/** A read of a number within a span; `sets` is a write. */
const sees = (begin: number, end: number, value: number): Observed<number> => ({
  span: { begin, end },
  story: `sees ${value}`,
  guess: undefined,
  isSight: true,
  next: (state) => (state === value ? state : undefined),
});
const sets = (begin: number, end: number, value: number): Observed<number> => ({
  span: { begin, end },
  story: `sets ${value}`,
  guess: undefined,
  isSight: false,
  next: (state) => (state === value ? state : value),
});
const mayHaveSet = (begin: number, value: number): Observed<number> => ({
  ...sets(begin, Number.POSITIVE_INFINITY, value),
  guess: `set ${value}`,
});

/** Returns the text of an unexplained history; undefined when an order exists. */
function found(...observed: Observed<number>[]): string | undefined {
  const verdict = explain(observed, 0, String);
  expect(verdict.is).not.toBe('given up');
  return verdict.is === 'unexplained' ? verdict.story : undefined;
}

describe('an order of what was observed', () => {
  test('is found where one thing came after the other', () => {
    expect(found(sees(0, 1, 0), sets(2, 3, 1), sees(4, 5, 1))).toBeUndefined();
  });

  test('is not found where something is seen before it was set, or after it was set to something else', () => {
    expect(found(sees(0, 1, 1), sets(2, 3, 1))).toContain('sees 1');
    expect(found(sets(0, 1, 1), sets(2, 3, 2), sees(4, 5, 1))).toContain('sees 1');
  });

  test('is found among all orders of what was under way at once', () => {
    expect(found(sets(0, 10, 1), sets(0, 10, 2), sees(1, 2, 2), sees(3, 4, 1))).toBeUndefined();
    expect(found(sets(0, 10, 1), sets(0, 10, 2), sees(1, 2, 2), sees(3, 4, 1), sees(5, 6, 2))).toContain('sees 2');
  });

  test('is found where something was set to what it was, before it was set to something else or after it', () => {
    expect(found(sets(0, 1, 1), sets(2, 9, 2), sets(3, 9, 1), sees(10, 11, 1))).toBeUndefined();
    expect(found(sets(0, 1, 1), sets(2, 9, 2), sets(3, 9, 1), sees(10, 11, 2))).toBeUndefined();
  });

  test('is not said to be missing where too many places would have to be looked at', () => {
    const guesses = Array.from({ length: 20 }, (_, value) => mayHaveSet(0, value + 1));
    expect(found(...guesses.slice(0, 3), sees(1, 2, -1))).toContain('sees -1');
    expect(explain([...guesses, sees(1, 2, -1)], 0, String)).toEqual({ is: 'given up' });
  });

  test('may have what nobody was told of, at any later time, once or never', () => {
    expect(found(mayHaveSet(0, 1), sees(1, 2, 0), sees(100, 101, 1))).toBeUndefined();
    expect(found(mayHaveSet(0, 1), sees(1, 2, 0), sees(100, 101, 0))).toBeUndefined();
    expect(found(mayHaveSet(0, 1), sees(1, 2, 1), sets(3, 4, 0), sees(5, 6, 1))).toContain('sees 1');
    expect(found(mayHaveSet(0, 1), mayHaveSet(0, 1), sees(1, 2, 1), sets(3, 4, 0), sees(5, 6, 1))).toBeUndefined();
    expect(found(sees(0, 1, 1), mayHaveSet(2, 1))).toContain('sees 1');
  });
});
