import { type History, now } from './history.ts';

/** How often it is looked whether the machine gives anybody time; milliseconds. */
const BEAT_MS = 100;

/** Where this much of it is missing, others missed it too, and nothing that was late then tells anything of the service; milliseconds. */
const MISSING_MS = 1000;

/**
 * Notes as a disturbance when the machine, too busy with something else, gave this process no time.
 *
 * @returns what ends it
 */
export function noteStillness(history: History): () => void {
  let last = now();
  const beat = setInterval(() => {
    const span = { begin: last, end: now() };
    last = span.end;
    const missingMs = Math.round(span.end - span.begin) - BEAT_MS;
    const what = `whoever lives this gets no time for ${missingMs} ms`;
    if (missingMs > MISSING_MS) history.add({ kind: 'disturbance', party: 'machine', what, loses: [], span });
  }, BEAT_MS);
  return () => clearInterval(beat);
}
