import { inTime } from './in-time.ts';

/**
 * Returns a function that runs another one, which is never in flight twice: all who call meanwhile share the result of one run
 * that begins after their calls.
 *
 * @param patienceMs how long they wait for one in flight, which may never end; milliseconds
 */
export function oneAtATime<Result>(
  run: () => Promise<Result>,
  patienceMs = Number.POSITIVE_INFINITY,
): () => Promise<Result> {
  let inFlight: Promise<unknown> = Promise.resolve();
  let following: Promise<Result> | undefined;
  return () => {
    following ??= inFlight.then(() => {
      following = undefined;
      const current = run();
      inFlight = inTime(current, patienceMs).catch(() => {});
      return current;
    });
    return following;
  };
}
