import type { Logger } from 'pino';
import { Throttle } from '../common/throttle.ts';
import type { ConversionProgress } from './store/conversion.ts';

/** How often it is told; milliseconds. */
const TOLD_EVERY_MS = 5000;

/** Tells how far the conversion of a database file is, and how long it will take. */
export function conversionLog(log: Logger): (progress: ConversionProgress) => void {
  const progress = new Throttle(TOLD_EVERY_MS);
  let began: { readonly done: number; readonly at: number } | undefined;
  return ({ done, total }) => {
    // How long it took to the first records, with the tables changed before, tells nothing of what is left.
    if (!began) began = { done, at: performance.now() };
    else if (progress.isDue()) {
      const speed = speedSince(began, { done, total });
      log.info({ done, total, ...speed }, 'the database file of an earlier release is being converted');
    }
  };
}

function speedSince(began: { readonly done: number; readonly at: number }, { done, total }: ConversionProgress) {
  const perSecond = Math.round(((done - began.done) / (performance.now() - began.at)) * 1000);
  return { perSecond, secondsLeft: Math.ceil((total - done) / Math.max(1, perSecond)) };
}
