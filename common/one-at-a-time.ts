import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Returns a function that runs another one, which is never in flight twice: all who call meanwhile share the result of one run
 * that begins after their calls.
 *
 * @param patienceMs how long they wait for one in flight, which may never end; milliseconds
 */
export function oneAtATime<Result>(run: () => Promise<Result>, patienceMs?: number): () => Promise<Result> {
  let inFlight: Promise<unknown> = Promise.resolve();
  let following: Promise<Result> | undefined;
  return () => {
    following ??= inFlight.then(() => {
      following = undefined;
      const current = run();
      inFlight = ended(current, patienceMs);
      return current;
    });
    return following;
  };
}

async function ended(work: Promise<unknown>, patienceMs: number | undefined): Promise<void> {
  const waiting = new AbortController();
  const ends = [work];
  if (patienceMs !== undefined) ends.push(sleep(patienceMs, undefined, { signal: waiting.signal, ref: false }));
  await Promise.race(ends).catch(() => {});
  waiting.abort();
}
