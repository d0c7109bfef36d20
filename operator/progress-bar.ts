import { Throttle } from '../common/throttle.ts';

/** How often the bar is printed; milliseconds. */
const INTERVAL_MS = { terminal: 500, elsewhere: 10_000 } as const;

/**
 * Creates a progress bar on standard error, which also shows the time left.
 *
 * @returns a function of the work done, all work, and what describes the progress after a number of seconds
 */
export function progressBar(): (done: number, total: number, describe: (seconds: number) => string) => void {
  const { isTTY } = process.stderr;
  const throttle = new Throttle(isTTY ? INTERVAL_MS.terminal : INTERVAL_MS.elsewhere);
  const startedAt = performance.now();
  throttle.allow();
  return (done, total, describe) => {
    if (!throttle.allow()) return;
    const share = Math.min(done / Math.max(total, 1), 1);
    const seconds = (performance.now() - startedAt) / 1000;
    const left = share > 0 ? `${Math.round(seconds / share - seconds)} s left` : 'starting';
    const line = `[${'#'.repeat(Math.floor(25 * share)).padEnd(25, '.')}] ${describe(seconds)}, ${left}`;
    process.stderr.write(isTTY ? `\r${line}  ` : `${line}\n`);
  };
}
