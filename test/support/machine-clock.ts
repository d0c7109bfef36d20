import { globSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Settings } from '../simulation/settings.ts';

/** The library of Debian's `faketime` package. The dynamic loader expands `$LIB` to the folder of the platform. */
const LIBRARY = '/usr/$LIB/faketime/libfaketime.so.1';

/** Whether the library is installed. CI requires it. */
export const canSetClocks: boolean =
  process.env.CI === 'true' || globSync('/usr/lib{,64}{,/*-linux-*}/faketime/libfaketime.so.1').length > 0;

/** A wall clock that tests can set, for some processes. Their monotonic clock is not affected. */
export class MachineClock {
  readonly name: string;
  /** Settings that give a process this clock. */
  readonly settings: Settings;
  readonly #file: string;

  /** @param folder the folder of the file with the clock's offset */
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

  /** Sets the offset from the real time. Processes use it within a second. */
  set(aheadSeconds: number): void {
    // The rename is atomic, so a reader finds the old or the new file, never a partial one.
    writeFileSync(`${this.#file}.new`, `${aheadSeconds < 0 ? '' : '+'}${aheadSeconds}s\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}
