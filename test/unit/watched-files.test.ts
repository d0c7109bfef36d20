import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { Metrics } from '../../common/metrics.ts';
import { file } from '../../common/settings.ts';
import { watchFiles } from '../../common/watched-files.ts';
import { temporaryFolder } from '../tools/processes.ts';

/** Longer than two checks of the files; milliseconds. */
const TWO_CHECKS_MS = 2500;

/** Watches two files. Returns their paths, the contents loaded from them, and the lines that were logged. */
function twoFiles() {
  const folder = temporaryFolder();
  const paths = [join(folder, 'a'), join(folder, 'b')] as const;
  for (const path of paths) writeFileSync(path, '1');
  const loaded: string[][] = [];
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line) => void lines.push(JSON.parse(line)) });
  const reload = (...contents: string[]) => {
    if (contents.includes('bad')) throw new Error('it is bad');
    loaded.push(contents);
    return { count: loaded.length };
  };
  const stop = watchFiles({ what: 'letters', files: paths.map(file), reload }, log);
  onTestFinished(stop);
  return { paths, loaded, lines, stop };
}

test('watched files written in two steps are loaded once, when they are complete', async () => {
  const { paths, loaded, lines } = twoFiles();
  // The files are written more often than they are checked, for several checks.
  for (let step = 2; step < 22; step += 1) {
    writeFileSync(step % 2 === 0 ? paths[0] : paths[1], `${step}`);
    await sleep(200);
  }

  await expect.poll(() => loaded).toEqual([['20', '21']]);
  expect(lines).toEqual([{ level: 30, files: paths, count: 1, msg: 'letters reloaded' }]);
});

test('invalid watched files are reported once for each fault, and unchanged files not reloaded', async () => {
  const { paths, loaded, lines } = twoFiles();
  const [a, b] = paths;
  /** Waits for this many lines, and then as long as one more would take. */
  const logged = async (count: number) => {
    await expect.poll(() => lines).toHaveLength(count);
    await sleep(TWO_CHECKS_MS);
  };
  writeFileSync(a, 'bad');
  await logged(1);
  rmSync(b);
  await logged(2);
  const warning = (fault: string) => ({ level: 40, files: paths, fault, msg: WARNING });
  expect(lines).toEqual([warning('it is bad'), warning(`${b} cannot be read (ENOENT)`)]);
  const unusable = async () => /lead_intake_files_unusable\{what="letters"\} (\d)/.exec(await registry.metrics())?.[1];
  const registry = new Metrics();
  expect(await unusable()).toBe('1');

  for (const path of paths) writeFileSync(path, '1');
  await logged(3);
  expect(loaded).toEqual([]);
  expect(await unusable()).toBe('0');
  const again = { level: 30, files: paths, msg: 'letters as before: their files can be used again' };
  expect(lines.slice(2)).toEqual([again]);
  writeFileSync(a, 'bad');
  await expect.poll(() => lines).toHaveLength(4);
});

const WARNING = 'letters not reloaded: their files cannot be used';
