import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { ROOT } from './processes.ts';
import { describeIf } from './servers.ts';

const UNSHARE = ['unshare', '--mount', '--propagation', 'private'] as const;
const MOUNT = 'mount -t tmpfs -o size="$2" tmpfs "$1"';

/** A disk of its own that a test can fill. Only those see it who are started within it; it goes with the test. */
export interface SmallDisk {
  readonly folder: string;
  /** What stands before a command that is to see it. */
  readonly within: readonly string[];
  /** Leaves no room on it. */
  fill(): void;
  /** Gives back the room that filling took. */
  free(): void;
  /** Ends it for good, once nothing that saw it runs any more. */
  stop(): void;
}

const [unshare, ...unshareArgs] = [...UNSHARE, 'sh', '-c', MOUNT, 'sh', '/mnt', '64k'] as const;

/** Whether such disks can be had here, and what to do where they cannot. */
export const SMALL_DISKS = {
  areThere: spawnSync(unshare, unshareArgs).status === 0,
  remedy: 'let it mount a tmpfs: as root, where mounts are allowed',
};

/** A suite whose tests fill disks of their own. */
export function describeWithSmallDisks(name: string, body: () => void): void {
  describeIf(SMALL_DISKS.areThere, name, SMALL_DISKS.remedy, body);
}

/** Mounts a disk of so many KiB, gone when the test is over. */
export async function aSmallDisk(sizeKib: number): Promise<SmallDisk> {
  const disk = await startSmallDisk(sizeKib);
  onTestFinished(() => disk.stop());
  return disk;
}

/** Whoever starts one must stop it. */
export async function startSmallDisk(sizeKib: number): Promise<SmallDisk> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  const script = `${MOUNT} && echo mounted && exec sleep infinity`;
  const [command, ...args] = [...UNSHARE, 'sh', '-c', script, 'sh', folder, `${sizeKib}k`];
  const holder = spawn(command as string, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(holder.stdout, 'data');
  const within = ['nsenter', `--mount=/proc/${holder.pid}/ns/mnt`, `--wd=${ROOT}`, '--'];
  const inside = (script: string) =>
    spawnSync(within[0] as string, [...within.slice(1), 'sh', '-c', script, 'sh', folder]);
  return {
    folder,
    within,
    fill: () => void inside('cat /dev/zero > "$1/ballast"'),
    free: () => void inside('rm "$1/ballast"'),
    stop() {
      holder.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
