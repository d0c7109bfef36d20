import { globSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What Debian's `faketime` brings. The loader finds the folder of the machine it runs on. */
const LIBRARY = '/usr/$LIB/faketime/libfaketime.so.1';

/** Whether a driver on this machine can have a clock that is set. */
export const canClockBeSet: boolean = globSync('/usr/lib{,64}{,/*-linux-*}/faketime/libfaketime.so.1').length > 0;

/** The clock of a driver's machine. What measures how long something takes is not the clock, and goes on evenly. */
export class DriverClock {
  readonly #folder = mkdtempSync(join(tmpdir(), 'lead-intake-clock-'));
  readonly #file = join(this.#folder, 'clock');
  /** With these settings a process has this clock. */
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

  /** Sets it so many seconds ahead of the time, or behind it. */
  set(aheadSeconds: number): void {
    // Whoever reads it finds the one or the other, whole.
    writeFileSync(`${this.#file}.new`, `${aheadSeconds < 0 ? '' : '+'}${aheadSeconds}s\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }
}
