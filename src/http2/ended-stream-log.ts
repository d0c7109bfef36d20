import type { Logger } from 'pino';

/** How often the log tells of what was ended; milliseconds. */
const TOLD_EVERY_MS = 10_000;

/** Tells of something that was ended before its caller wanted it to, and why. */
export type ReportEnded = (reason: string) => void;

/** Says in the log how much was ended and why: at once, and then every so often, so that nobody can fill it. */
export function endedReporter(log: Logger): ReportEnded {
  let ended: Record<string, number> = {};
  let timer: NodeJS.Timeout | undefined;
  const tell = () => {
    timer = undefined;
    if (Object.keys(ended).length === 0) return;
    log.warn({ ended }, 'ended what callers held');
    ended = {};
    timer = setTimeout(tell, TOLD_EVERY_MS).unref();
  };
  return (reason) => {
    ended[reason] = (ended[reason] ?? 0) + 1;
    if (timer === undefined) tell();
  };
}
