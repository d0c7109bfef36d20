import { randomInt } from 'node:crypto';

/** A reproducible random source: the same seed gives the same choices. */
export interface Chance {
  /** A number from 0 (inclusive) to 1 (exclusive). */
  number(): number;
  /** An integer; both bounds are inclusive. */
  between(lowest: number, highest: number): number;
  /** One of the choices. A choice listed twice is twice as likely. */
  oneOf<T>(choices: readonly T[]): T;
  /** A UUID of version 4. */
  uuid(): string;
  /** An independent random source: drawing from one does not affect the other. */
  branch(): Chance;
}

/** Returns the seed in an environment variable, or a random one, and prints it. */
export function seedFrom(variable: string): number {
  const seed = Number(process.env[variable] ?? randomInt(2 ** 32));
  console.info(`${variable}=${seed}`);
  return seed;
}

/** @param seed an integer from 0 to 2³² − 1 */
export function createChance(seed: number): Chance {
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
    branch: () => createChance(between(0, 2 ** 32 - 1)),
  };
}
