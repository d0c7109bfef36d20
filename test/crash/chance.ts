/** Chance that can be had again: the same seed gives the same choices. */
export interface Chance {
  /** A number from 0 up to 1, without 1. */
  number(): number;
  /** A whole number, both ends included. */
  between(lowest: number, highest: number): number;
  /** One of these; those named more often come more often. */
  oneOf<T>(choices: readonly T[]): T;
  /** A UUID of version 4. */
  uuid(): string;
  /** Chance of somebody's own: what others take from theirs makes no difference to it. */
  branch(): Chance;
}

/** @param seed a whole number below 2³² */
export function chanceOf(seed: number): Chance {
  // mulberry32
  let state = seed;
  const number = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (lowest: number, highest: number) => lowest + Math.floor(number() * (highest - lowest + 1));
  const hex = (digits: number) => Array.from({ length: digits }, () => between(0, 15).toString(16)).join('');
  return {
    number,
    between,
    oneOf: (choices) => choices[between(0, choices.length - 1)] as (typeof choices)[number],
    uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-${'89ab'[between(0, 3)]}${hex(3)}-${hex(12)}`,
    branch: () => chanceOf(between(0, 2 ** 32 - 1)),
  };
}
