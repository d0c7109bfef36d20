import { hash, randomFillSync, randomInt } from 'node:crypto';
import { v7 } from 'uuid';

/** Returns the current time; whole milliseconds. */
export type Clock = () => Date;

export const systemClock: Clock = () => new Date();

/** How far the clocks of processes and of other systems may differ; milliseconds. */
export const CLOCKS_DIFFER_MS = 300_000;

/** The bounds of all lead ids. */
export const LOWEST_ID = '00000000-0000-0000-0000-000000000000';
export const HIGHEST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * Returns a new id: a version 7 UUID in lower case, higher than all earlier ids of this generator. A clock set back by
 * more than MAX_AHEAD_MS breaks that order.
 */
export type NewId = () => string;

/**
 * The longest time for which new ids stay ahead of a clock that was set back; milliseconds. A clock that is set back
 * further was ahead by mistake, and later leads must not get that time.
 */
const MAX_AHEAD_MS = 60_000;

/** Counters begin in the lower half of their 32 bits, so they seldom run out within a millisecond. */
const MAX_FIRST_COUNT = 2 ** 31;
const MAX_COUNT = 2 ** 32 - 1;

const RANDOM_BYTES = 16;

/** Returns a source of random bytes, fetched for many ids at once. Fetching them for each id would dominate its cost. */
function randomBytesOfIds(): () => Uint8Array {
  const all = new Uint8Array(256 * RANDOM_BYTES);
  let used = all.length;
  return () => {
    if (used === all.length) {
      randomFillSync(all);
      used = 0;
    }
    used += RANDOM_BYTES;
    return all.subarray(used - RANDOM_BYTES, used);
  };
}

/**
 * Returns an id generator.
 * @param now the clock; milliseconds since 1970
 * @param onSetBack called with the milliseconds by which ids were ahead of the clock until now
 * @rule 2.1.id 2.1.version-7 4.3.newest-first
 */
export function idGenerator(now: () => number, onSetBack: (aheadMs: number) => void = () => {}): NewId {
  let msecs = Number.NEGATIVE_INFINITY;
  let seq = 0;
  const nextRandom = randomBytesOfIds();
  return () => {
    const random = nextRandom();
    const time = now();
    const aheadMs = msecs - time;
    if (aheadMs > MAX_AHEAD_MS) onSetBack(aheadMs);
    if (aheadMs < 0 || aheadMs > MAX_AHEAD_MS) msecs = time;
    else if (seq < MAX_COUNT) return v7({ msecs, seq: ++seq, random });
    else msecs += 1;
    seq = randomInt(MAX_FIRST_COUNT);
    return v7({ msecs, seq, random });
  };
}

/** The id generator of commands. */
export const newId: NewId = idGenerator(Date.now);

/** Returns a new id with a given time. Ids of the same time have no particular order. */
export const newIdAt = (time: Date): string => v7({ msecs: time.getTime() });

/** Derives an id from a text, always the same one: a version 8 UUID. */
export function idFrom(text: string): string {
  const hex = hash('sha256', text, 'hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** Returns the creation time of a version 7 id; whole milliseconds. */
export const timeOfId = (id: string): Date => new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16));

export const newestFirst = (a: { readonly id: string }, b: { readonly id: string }): number => (a.id < b.id ? 1 : -1);

/** Returns an id below all ids of this time or later, and above all earlier ones. */
export function idBelow(time: Date): string {
  const hex = Math.max(0, time.getTime()).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
