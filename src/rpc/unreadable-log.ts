import type { Logger } from 'pino';
import type { ReportUnreadable } from '../store/store.ts';

/** How long nothing more is said of a record; milliseconds. */
const SAID_EVERY_MS = 3_600_000;

/** Of how many records it is said in that time: what stands in the database must not fill the disk of the log. */
const MOST_SAID = 1000;

/** Writes a line about each record that cannot be read, however often it is come across. */
export function unreadableLog(log: Logger): ReportUnreadable {
  const said = new Set<string>();
  let began = 0;
  return ({ kind, studioId, id, field }) => {
    const now = performance.now();
    if (now - began >= SAID_EVERY_MS) {
      said.clear();
      began = now;
    }
    const name = `${kind} ${studioId} ${id}`;
    if (said.has(name) || said.size >= MOST_SAID) return;
    said.add(name);
    log.error({ kind, studioId, id, field }, 'a record cannot be read');
  };
}
