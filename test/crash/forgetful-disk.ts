import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { describeIf } from '../support/servers.ts';

/** What `.ci/install-fuse` installs. */
const PYTHON = '/usr/local/lib/mfusepy/bin/python3';
const FUSERMOUNT = '/usr/bin/fusermount3';

/** How long a disk may take to be there; milliseconds. */
const THERE_WITHIN_MS = 10_000;

/** Whether such disks can be had here, and what to do where they cannot. */
export const FORGETFUL_DISKS = {
  areAvailable: ['/dev/fuse', PYTHON, FUSERMOUNT].every((path) => existsSync(path)),
  remedy: 'run .ci/install-fuse, on a machine that has /dev/fuse',
};

/** A suite that needs a disk which can lose its power. */
export function describeWithForgetfulDisk(name: string, body: () => void): void {
  describeIf(FORGETFUL_DISKS.areAvailable, name, FORGETFUL_DISKS.remedy, body);
}

/** When the power of a disk fails, and what is left on it then. */
export interface PowerCut {
  /** At which change or sync from now on; at once with 0. */
  readonly after: number;
  /** The name of the file that is changed or synced; empty: of any. */
  readonly of: string;
  /** How likely each part of what was written and not synced is kept: from 0 to 1. */
  readonly keepsData: number;
  /** The same of names that were made, changed or removed. */
  readonly keepsNames: number;
  /** The same seed keeps the same parts of the same. */
  readonly seed: number;
}

/** A disk that forgets what was not synced when its power fails, but for a part of it: `forgetful-disk.py` tells which. */
export interface ForgetfulDisk {
  /** The folder in which it is. */
  readonly folder: string;
  /** Has its power fail. Whatever is done on the disk from that moment on fails. */
  failPower(cut: PowerCut): Promise<void>;
  /** Waits until the power has failed. */
  failed(): Promise<void>;
  /** Has it back, with what is left on it. */
  restorePower(): Promise<void>;
  /** Has it back with nothing on it. */
  replace(): Promise<void>;
  /** Ends it for good. */
  stop(): Promise<void>;
}

/** Gives a disk of one's own, gone when the test is over. */
export async function aForgetfulDisk(): Promise<ForgetfulDisk> {
  const disk = await startForgetfulDisk();
  onTestFinished(() => disk.stop());
  return disk;
}

/** Whoever starts one must stop it. */
export async function startForgetfulDisk(): Promise<ForgetfulDisk> {
  const home = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  const [folder, left] = [join(home, 'disk'), join(home, 'left')];
  for (const each of [folder, left]) mkdirSync(each);
  let disk: ChildProcess;
  let ended: Promise<unknown>;

  const mount = async () => {
    disk = spawn(PYTHON, [join(import.meta.dirname, 'forgetful-disk.py'), folder, left], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    ended = once(disk, 'exit');
    for (const giveUp = performance.now() + THERE_WITHIN_MS; !existsSync(join(folder, '.cut')); await sleep(10)) {
      if (performance.now() > giveUp) throw new Error(`no disk within ${THERE_WITHIN_MS} ms`);
    }
  };
  const unmount = async () => {
    disk.kill('SIGKILL');
    await ended;
    // Lazily: what is killed may not be gone yet.
    spawnSync(FUSERMOUNT, ['-u', '-z', folder]);
  };
  await mount();
  return {
    folder,
    async failPower(cut) {
      // With the power fails what was to tell so.
      await writeFile(join(folder, '.cut'), JSON.stringify(cut)).catch(() => {});
    },
    async failed() {
      await ended;
    },
    async restorePower() {
      await unmount();
      await mount();
    },
    async replace() {
      await unmount();
      rmSync(left, { recursive: true });
      mkdirSync(left);
      await mount();
    },
    async stop() {
      await unmount();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
