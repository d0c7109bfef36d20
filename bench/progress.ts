/**
 * Shows the progress of work: a bar in a terminal, elsewhere a line for every tenth.
 *
 * @returns to be called after each step, or with the number of completed steps
 */
export function showProgress(label: string, total: number): (done?: number) => void {
  const { stderr } = process;
  let steps = 0;
  let shownTenths = 0;
  return (done = steps + 1) => {
    steps = done;
    const percent = Math.floor((done / total) * 100);
    if (stderr.isTTY) {
      const bar = '#'.repeat(percent / 4).padEnd(25, '.');
      stderr.write(`\r${label} [${bar}] ${percent} %${done >= total ? '\n' : ''}`);
    } else if (Math.floor(percent / 10) > shownTenths) {
      shownTenths = Math.floor(percent / 10);
      stderr.write(`${label}: ${percent} %\n`);
    }
  };
}
