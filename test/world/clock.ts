import { globSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Settings } from './settings.ts';

/** What Debian's `faketime` brings. The loader finds the folder of the machine it runs on. */
const LIBRARY = '/usr/$LIB/faketime/libfaketime.so.1';

/** Whether this machine has it. In CI it has to. */
export const canClocksBeSet: boolean =
  process.env.CI === 'true' || globSync('/usr/lib{,64}{,/*-linux-*}/faketime/libfaketime.so.1').length > 0;

/** The clock of a machine, which can be set. What measures how long something takes is not the clock, and goes on evenly. */
export class MachineClock {
  readonly name: string;
  /** With these settings a process has this clock. */
  readonly settings: Settings;
  readonly #file: string;

  /** @param folder where the clock keeps what it is set to */
  constructor(name: string, folder: string) {
    mkdirSync(folder, { recursive: true });
    this.name = name;
    this.#file = join(folder, name.replaceAll(' ', '-'));
    this.set(0);
    this.settings = {
      LD_PRELOAD: LIBRARY,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_CACHE_DURATION: '1',
      DONT_FAKE_MONOTONIC: '1',
      NO_FAKE_STAT: '1',
    };
  }

  /** Has it be so many seconds ahead of the time, or behind it, within a second from now. */
  set(aheadSeconds: number): void {
    // Whoever reads it finds the one or the other, whole.
    writeFileSync(`${this.#file}.new`, `${aheadSeconds < 0 ? '' : '+'}${aheadSeconds}s\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}
