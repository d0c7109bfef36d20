import fc from 'fast-check';
import type { KnownKey, KnownStudio, Life } from '../life.ts';
import { STUDIOS } from '../life.ts';

/** Mostly the first of so many: there things meet. */
export const mostlyFirst = (count: number): fc.Arbitrary<number> =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(count - 1) });

/** Which studio: mostly one of the first. */
export const studio: fc.Arbitrary<number> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.constant(1) },
  { weight: 2, arbitrary: fc.nat(STUDIOS - 1) },
);

/** Which of several things, counted from the newest, however many there are when it happens. */
export const recent: fc.Arbitrary<number> = fc.oneof(mostlyFirst(5), fc.nat(40));

/** How long something lasts; milliseconds. */
export const lasting = (min: number, max: number): fc.Arbitrary<number> =>
  fc.oneof(fc.integer({ min, max: Math.ceil(min + (max - min) / 8) }), fc.integer({ min, max }));

export const studioAt = (life: Life, index: number): KnownStudio => life.studios[index] as KnownStudio;

/** The n-th of several, counted from the newest. */
export const newest = <T>(things: readonly T[], index: number): T | undefined =>
  things.at(-1 - (index % Math.max(things.length, 1)));

/** A secret of a studio: that of one of its keys. */
export const keyOf = ({ keys }: KnownStudio, index: number): KnownKey => newest(keys, index) as KnownKey;

export const one = <T>(things: readonly T[], index: number): T => things[index % things.length] as T;
