import type { Logger } from 'pino';
import { Throttle } from '../../common/throttle.ts';
import type { ReportUnreadable } from '../store/store.ts';

/** The interval in which a record is logged at most once; milliseconds. */
const LOG_INTERVAL_MS = 3_600_000;

/** The maximum number of records logged in that time, so that damaged data cannot fill the disk. */
const MAX_LOG_LINES = 1000;

/** Logs unreadable records, each at most once per interval. */
export function unreadableRecordLog(log: Logger): ReportUnreadable {
  const throttle = new Throttle(LOG_INTERVAL_MS, MAX_LOG_LINES);
  return ({ kind, studioId, id, field }) => {
    if (!throttle.allow(`${kind} ${studioId} ${id}`)) return;
    log.error({ kind, studioId, id, field }, 'unreadable record');
  };
}
