import fc from 'fast-check';
import type { KnownKey, KnownStudio, Simulation } from '../simulation.ts';
import { STUDIOS } from '../simulation.ts';

/** Chooses mostly the first of `count`, so that operations conflict. */
export const mostlyFirst = (count: number): fc.Arbitrary<number> =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(count - 1) });

/** Chooses the index of a studio: mostly one of the first two. */
export const studio: fc.Arbitrary<number> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.constant(1) },
  { weight: 2, arbitrary: fc.nat(STUDIOS - 1) },
);

/** Chooses an index for `newest`: most often the newest. */
export const recent: fc.Arbitrary<number> = fc.oneof(mostlyFirst(5), fc.nat(40));

/** Chooses a duration, more often a short one; milliseconds. */
export const lasting = (min: number, max: number): fc.Arbitrary<number> =>
  fc.oneof(fc.integer({ min, max: Math.ceil(min + (max - min) / 8) }), fc.integer({ min, max }));

export const isOnSqlite = ({ world }: Simulation): boolean => world.databaseUrl.startsWith('sqlite:');

/** Returns the path of the database file of a life on SQLite. */
export const databaseFile = ({ world }: Simulation): string => world.databaseUrl.replace(/^sqlite:/, '');

export const studioAt = (sim: Simulation, index: number): KnownStudio => sim.studios[index] as KnownStudio;

/** Returns one of several things; 0 is the newest. Larger indexes than there are things wrap around. */
export const newest = <T>(things: readonly T[], index: number): T | undefined =>
  things.at(-1 - (index % Math.max(things.length, 1)));

/** Returns one of a studio's keys; 0 is the newest. */
export const chooseKey = ({ keys }: KnownStudio, index: number): KnownKey => newest(keys, index) as KnownKey;

export const one = <T>(things: readonly T[], index: number): T => things[index % things.length] as T;
