import { readFileSync } from 'node:fs';
import { type History, now } from './history.ts';
import type { World } from './world.ts';

/** How often it is looked whether the machine gives everybody time; milliseconds. */
const LOOK_MS = 250;

/** What a process of the product may wait for its turn in that time, so that nobody else is late because of it; milliseconds. */
const MAX_WAITING_MS = 150;

/**
 * Notes as a disturbance when the machine, too busy with something else, left a process of the product waiting for a processor:
 * what is late then tells nothing of the service.
 *
 * @returns what ends it
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

/** How long the main thread of a process has waited for a processor since it began; milliseconds. */
function waitedMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
  } catch {
    return 0;
  }
}
