import { inTime } from './in-time.ts';

/**
 * Returns a function that runs another one, but never twice at once. Callers during a run share the result of one later run.
 *
 * @param patienceMs how long these wait for the run in flight, which may never end; milliseconds
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
