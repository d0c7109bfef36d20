/** A bar in a terminal, a line for every tenth elsewhere. Gives what reports how much is done. */
export function showProgress(label: string, total: number): (done: number) => void {
  const { stderr } = process;
  let shownTenths = 0;
  return (done) => {
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
