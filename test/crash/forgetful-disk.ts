import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { describeIf } from '../tools/servers.ts';

/** The Python that `.ci/install-fuse` installs. */
const PYTHON = '/usr/local/lib/mfusepy/bin/python3';
const FUSERMOUNT = '/usr/bin/fusermount3';

/** How long mounting a disk may take; milliseconds. */
const THERE_WITHIN_MS = 10_000;

/** Whether such disks are available on this machine, and the remedy if not. */
export const FORGETFUL_DISKS = {
  areAvailable: ['/dev/fuse', PYTHON, FUSERMOUNT].every((path) => existsSync(path)),
  remedy: 'run .ci/install-fuse, on a machine that has /dev/fuse',
};

/** A suite that needs a disk that can lose its power. */
export function describeWithForgetfulDisk(name: string, body: () => void): void {
  describeIf(FORGETFUL_DISKS.areAvailable, name, FORGETFUL_DISKS.remedy, body);
}

/** When the power of a disk fails, and what remains on it. */
export interface PowerCut {
  /** The number of the change or sync, counted from now, at which it fails; 0: immediately. */
  readonly after: number;
  /** The name of the file whose changes and syncs count; empty: any. */
  readonly of: string;
  /** The probability that a part of the data that was not synced survives: 0 to 1. */
  readonly keepsData: number;
  /** The same probability for names that were created, changed or removed. */
  readonly keepsNames: number;
  /** The same seed keeps the same parts of the same changes. */
  readonly seed: number;
}

/** A disk that loses unsynced changes, except a random part of them, when its power fails: see `forgetful-disk.py`. */
export interface ForgetfulDisk {
  /** The folder at which it is mounted. */
  readonly folder: string;
  /** Makes its power fail. From then on every operation on the disk fails. */
  failPower(cut: PowerCut): Promise<void>;
  /** Waits until the power has failed. */
  failed(): Promise<void>;
  /** Mounts it again with its remaining data. */
  restorePower(): Promise<void>;
  /** Mounts it again, empty. */
  replace(): Promise<void>;
  /** Removes it permanently. */
  stop(): Promise<void>;
}

/** Returns a new disk, which is removed when the test ends. */
export async function aForgetfulDisk(): Promise<ForgetfulDisk> {
  const disk = await startForgetfulDisk();
  onTestFinished(() => disk.stop());
  return disk;
}

/** Starts a disk. The caller must stop it. */
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
    // Lazily: a killed process may still be exiting.
    spawnSync(FUSERMOUNT, ['-u', '-z', folder]);
  };
  await mount();
  return {
    folder,
    async failPower(cut) {
      // The power failure also ends the process that would confirm the write.
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
