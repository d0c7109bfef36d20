import { Throttle } from '../common/throttle.ts';

/** How often it is told how far something is: in a terminal, and elsewhere; milliseconds. */
const SHOWN_EVERY_MS = { terminal: 500, elsewhere: 10_000 } as const;

/**
 * Tells on standard error once in a while how far something is, and the time left.
 *
 * @returns is told how much of what there is to do is done, and what to say of that after so many seconds
 */
export function progressBar(): (done: number, total: number, told: (seconds: number) => string) => void {
  const { isTTY } = process.stderr;
  const shown = new Throttle(isTTY ? SHOWN_EVERY_MS.terminal : SHOWN_EVERY_MS.elsewhere);
  const began = performance.now();
  shown.isDue();
  return (done, total, told) => {
    if (!shown.isDue()) return;
    const share = Math.min(done / Math.max(total, 1), 1);
    const seconds = (performance.now() - began) / 1000;
    const left = share > 0 ? `${Math.round(seconds / share - seconds)} s left` : 'begun';
    const line = `[${'#'.repeat(Math.floor(25 * share)).padEnd(25, '.')}] ${told(seconds)}, ${left}`;
    process.stderr.write(isTTY ? `\r${line}  ` : `${line}\n`);
  };
}
