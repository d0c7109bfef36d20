import { setTimeout as sleep } from 'node:timers/promises';
import { TIMER_MS } from './deadlines.ts';

/**
 * Returns the result of work, or undefined when the time is up. The work goes on.
 *
 * @param ms milliseconds, at most 24 days; Infinity waits until the work ends
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
