import type { Logger } from 'pino';
import { Seldom } from '../common/seldom.ts';
import type { ConversionProgress } from './store/conversion.ts';

/** How often it is told; milliseconds. */
const TOLD_EVERY_MS = 5000;

/** Tells how far the conversion of a database file is, and how long it will take. */
export function conversionLog(log: Logger): (progress: ConversionProgress) => void {
  const progress = new Seldom(TOLD_EVERY_MS);
  const began = performance.now();
  return ({ done, total }) => {
    if (!progress.isDue()) return;
    const perSecond = Math.round((done / (performance.now() - began)) * 1000);
    const secondsLeft = Math.ceil((total - done) / Math.max(1, perSecond));
    log.info({ done, total, perSecond, secondsLeft }, 'the database file of an earlier release is being converted');
  };
}
