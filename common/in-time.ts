import { setTimeout as sleep } from 'node:timers/promises';

/** Returns the result of work; undefined: it takes longer, and goes on. @param ms milliseconds; Infinity: however long it takes */
export async function inTime<Result>(work: Promise<Result>, ms: number): Promise<Result | undefined> {
  if (ms === Number.POSITIVE_INFINITY) return work;
  const waiting = new AbortController();
  try {
    return await Promise.race([work, sleep(ms, undefined, { signal: waiting.signal, ref: false })]);
  } finally {
    waiting.abort();
  }
}
