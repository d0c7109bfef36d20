import type { Logger } from 'pino';

/** The minimum interval between two log lines; milliseconds. */
const LOG_INTERVAL_MS = 10_000;

/** Reports a stream or connection that the server closed early, and why. */
export type ReportClosure = (reason: string) => void;

/** Logs early closures: the first one immediately, later ones as counts per interval. */
export function closureReporter(log: Logger): ReportClosure {
  let ended: Record<string, number> = {};
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    timer = undefined;
    if (Object.keys(ended).length === 0) return;
    log.warn({ ended }, 'closed streams or connections of callers');
    ended = {};
    timer = setTimeout(flush, LOG_INTERVAL_MS).unref();
  };
  return (reason) => {
    ended[reason] = (ended[reason] ?? 0) + 1;
    if (timer === undefined) flush();
  };
}
