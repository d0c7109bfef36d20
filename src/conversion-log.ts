import type { Logger } from 'pino';
import { Throttle } from '../common/throttle.ts';
import type { ConversionProgress } from './store/conversion.ts';

const LOG_INTERVAL_MS = 5000;

/** Logs the progress of the conversion of a database file, and the estimated time left. */
export function conversionLog(log: Logger): (progress: ConversionProgress) => void {
  const progress = new Throttle(LOG_INTERVAL_MS);
  let began: { readonly done: number; readonly at: number } | undefined;
  return ({ done, total }) => {
    // The time before the first call includes changes of the schema, so the speed is measured from there on.
    if (!began) began = { done, at: performance.now() };
    else if (progress.allow()) {
      const speed = speedSince(began, { done, total });
      log.info({ done, total, ...speed }, 'converting the database file of an earlier release');
    }
  };
}

function speedSince(began: { readonly done: number; readonly at: number }, { done, total }: ConversionProgress) {
  const perSecond = Math.round(((done - began.done) / (performance.now() - began.at)) * 1000);
  return { perSecond, secondsLeft: Math.ceil((total - done) / Math.max(1, perSecond)) };
}
