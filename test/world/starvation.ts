import { readFileSync } from 'node:fs';
import { type History, now } from './history.ts';
import type { World } from './world.ts';

/** The interval between checks of the scheduling delay; milliseconds. */
const LOOK_MS = 250;

/** The maximum scheduling delay of a process within one interval that does not excuse late responses; milliseconds. */
const MAX_WAITING_MS = 150;

/**
 * Records a disturbance whenever the machine was too busy to give a process of the product a processor: late responses of that
 * time are not a fault of the service.
 *
 * @returns a function that stops the recording
 */
export function recordStarvation(history: History, world: World): () => void {
  let last = now();
  let waited = new Map<number, number>();
  const timer = setInterval(() => {
    const span = { begin: last, end: now() };
    last = span.end;
    const before = waited;
    waited = new Map();
    for (const { pid, name } of world.processes()) {
      const all = waitedMs(pid);
      waited.set(pid, all);
      const waitingMs = Math.round(all - (before.get(pid) ?? all));
      const what = `${name} waits for a processor for ${waitingMs} ms of ${Math.round(span.end - span.begin)} ms`;
      if (waitingMs > MAX_WAITING_MS) history.add({ kind: 'disturbance', party: 'machine', what, loses: [], span });
    }
  }, LOOK_MS);
  return () => clearInterval(timer);
}

/** Returns how long the main thread of a process has waited for a processor since its start; milliseconds. */
function waitedMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
  } catch {
    return 0;
  }
}
