import { setTimeout as sleep } from 'node:timers/promises';
import { TIMER_MS } from './deadlines.ts';

/**
 * Returns the result of work; undefined: it takes longer, and goes on.
 *
 * @param ms milliseconds, of which it waits for 24 days at most; Infinity: however long it takes
 */
export async function inTime<Result>(work: Promise<Result>, ms: number): Promise<Result | undefined> {
  if (ms === Number.POSITIVE_INFINITY) return work;
  const waiting = new AbortController();
  try {
    return await Promise.race([work, sleep(Math.min(ms, TIMER_MS), undefined, { signal: waiting.signal, ref: false })]);
  } finally {
    waiting.abort();
  }
}
