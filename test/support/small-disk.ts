import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { ROOT } from '../tools/processes.ts';
import { describeIf } from '../tools/servers.ts';

const UNSHARE = ['unshare', '--mount', '--propagation', 'private'] as const;
const MOUNT = 'mount -t tmpfs -o size="$2",nr_inodes="$3" tmpfs "$1"';

/** A small disk that a test can fill. Only processes started with `within` see it. */
export interface SmallDisk {
  readonly folder: string;
  /** The command prefix that makes the disk visible. */
  readonly within: readonly string[];
  /** Runs a script with the folder as its first argument. */
  inside(script: string): void;
  /** Fills the disk. */
  fill(): void;
  /** Frees the space that `fill` took. */
  free(): void;
  /** Unmounts the disk. Processes that use it must have ended. */
  stop(): void;
}

const [unshare, ...unshareArgs] = [...UNSHARE, 'sh', '-c', MOUNT, 'sh', '/mnt', '64k', '0'] as const;

/** Whether such disks are available here, and the remedy if they are not. */
export const SMALL_DISKS = {
  areAvailable: spawnSync(unshare, unshareArgs).status === 0,
  remedy: 'let it mount a tmpfs: as root, where mounts are allowed',
};

/** Defines a suite whose tests fill their own disks. */
export function describeWithSmallDisks(name: string, body: () => void): void {
  describeIf(SMALL_DISKS.areAvailable, name, SMALL_DISKS.remedy, body);
}

/** Mounts a disk, removed at the end of the test. @param inodes 0: as many as fit */
export async function aSmallDisk(sizeKib: number, inodes = 0): Promise<SmallDisk> {
  const disk = await startSmallDisk(sizeKib, inodes);
  onTestFinished(() => disk.stop());
  return disk;
}

/** Mounts a disk. The caller must stop it. */
export async function startSmallDisk(sizeKib: number, inodes = 0): Promise<SmallDisk> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  const script = `${MOUNT} && echo mounted && exec sleep infinity`;
  const [command, ...args] = [...UNSHARE, 'sh', '-c', script, 'sh', folder, `${sizeKib}k`, `${inodes}`];
  const holder = spawn(command as string, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(holder.stdout, 'data');
  const within = ['nsenter', `--mount=/proc/${holder.pid}/ns/mnt`, `--wd=${ROOT}`, '--'];
  const inside = (script: string) =>
    spawnSync(within[0] as string, [...within.slice(1), 'sh', '-c', script, 'sh', folder]);
  return {
    folder,
    within,
    inside: (script) => void inside(script),
    fill: () => void inside('cat /dev/zero > "$1/ballast"'),
    free: () => void inside('rm "$1/ballast"'),
    stop() {
      holder.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
