import { globSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The library of Debian's package `faketime`. The loader expands `$LIB` to the machine's library folder. */
const LIBRARY = '/usr/$LIB/faketime/libfaketime.so.1';

/** Whether this machine can fake a driver's clock. */
export const canClockBeSet: boolean = globSync('/usr/lib{,64}{,/*-linux-*}/faketime/libfaketime.so.1').length > 0;

/** The wall clock of a driver's machine. The monotonic clock, which measures durations, is not affected. */
export class DriverClock {
  readonly #folder = mkdtempSync(join(tmpdir(), 'lead-intake-clock-'));
  readonly #file = join(this.#folder, 'clock');
  /** The environment variables that give a process this clock. */
  readonly env = {
    LD_PRELOAD: LIBRARY,
    FAKETIME_TIMESTAMP_FILE: this.#file,
    FAKETIME_NO_CACHE: '1',
    DONT_FAKE_MONOTONIC: '1',
    NO_FAKE_STAT: '1',
  };

  constructor() {
    this.set(0);
  }

  /** Sets the clock ahead of the real time, or behind it if negative. */
  set(aheadSeconds: number): void {
    // The rename is atomic: a reader sees either the old or the new content.
    writeFileSync(`${this.#file}.new`, `${aheadSeconds < 0 ? '' : '+'}${aheadSeconds}s\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }
}
