import type { Logger } from 'pino';
import { Throttle } from '../../common/throttle.ts';
import type { ReportUnreadable } from '../store/store.ts';

/** How long nothing more is said of a record; milliseconds. */
const SAID_EVERY_MS = 3_600_000;

/** Of how many records it is said in that time: what stands in the database must not fill the disk of the log. */
const MAX_LOG_LINES = 1000;

/** Writes a line about each record that cannot be read, however often it is come across. */
export function unreadableRecordLog(log: Logger): ReportUnreadable {
  const seldom = new Throttle(SAID_EVERY_MS, MAX_LOG_LINES);
  return ({ kind, studioId, id, field }) => {
    if (!seldom.isDue(`${kind} ${studioId} ${id}`)) return;
    log.error({ kind, studioId, id, field }, 'a record cannot be read');
  };
}
