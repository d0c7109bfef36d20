/** Images and containers by buildah, which needs no engine. Whoever calls is root, and the network is the machine's own. */
import { execFile, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { ROOT, type RunningProcess, watch } from './processes.ts';
import { describeIf, hasCommand } from './servers.ts';

const execute = promisify(execFile);

const [, BASE_IMAGE = ''] = /^FROM (\S+)/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')) ?? [];

const hasBaseImage = () =>
  hasCommand('buildah') && spawnSync('buildah', ['images', '--quiet', BASE_IMAGE], { encoding: 'utf8' }).stdout !== '';

/** A suite that builds the image and runs what is in it. */
export function describeWithImage(name: string, body: () => void): void {
  describeIf(hasBaseImage(), name, 'install buildah and run `.ci/base-image` as root', body);
}

/** Builds the image of the Dockerfile; gives its id. */
export async function buildImage(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-image-'));
  try {
    const idFile = join(folder, 'id');
    const how = ['--network', 'host', '--isolation', 'chroot', '--format', 'docker', '--layers', '--pull-never'];
    await execute('buildah', ['bud', ...how, '--iidfile', idFile, ROOT]);
    return readFileSync(idFile, 'utf8');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Removes an image, but not what other builds begin with. */
export async function removeImage(image: string): Promise<void> {
  // Another run may have built the same, and use it.
  await execute('buildah', ['rmi', image]).catch(() => {});
}

/** The command that an image runs when it is given none. */
export async function commandOf(image: string): Promise<readonly string[]> {
  const { stdout } = await execute('buildah', ['inspect', '--type', 'image', image]);
  return JSON.parse(stdout).Docker.config.Cmd;
}

/** A container of an image, and how commands run in it. Gone when the test is over. */
export interface Container {
  /** What this machine calls, with words of the container's behind it, to have it carry those out. */
  readonly entrance: readonly string[];
  /** Runs a command in it to its end: the status, and everything that it printed. */
  exec(...command: string[]): Promise<{ status: number; output: string }>;
  /** Starts what the container is for. Ended when the test is over. */
  run(...command: string[]): RunningProcess;
}

/** How a container is made. */
interface ContainerOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Files of this machine, by where the container sees them; it cannot write them. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Makes a container. */
export async function createContainer(
  image: string,
  { env = {}, files = {} }: ContainerOptions = {},
): Promise<Container> {
  const container = (await execute('buildah', ['from', '--pull-never', image])).stdout.trim();
  onTestFinished(async () => void (await execute('buildah', ['rm', container])));

  const settings = Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  const mounts = Object.entries(files).flatMap(([inside, outside]) => ['--volume', `${outside}:${inside}:ro`]);
  const options = ['--isolation', 'chroot', '--network', 'host', ...settings, ...mounts];
  const entrance = ['buildah', 'run', ...options, container, '--'] as const;
  const call = (command: readonly string[]) => {
    const [program, ...args] = [...entrance, ...command] as const;
    return watch(spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] }));
  };
  const exec = async (...command: string[]) => {
    const running = call(command);
    return { status: Number(await running.ended()), output: running.output() };
  };
  return {
    entrance,
    exec,
    run(...command) {
      const running = call(command);
      onTestFinished(async () => {
        // What ends when it is told to stop must not be waited for twice; the container's process is not our child.
        const pid = pidOf(running.output());
        if (pid !== undefined && running.child.exitCode === null) process.kill(pid, 'SIGKILL');
        await running.ended();
      });
      return running;
    },
  };
}

/** Asks what runs in a container to stop, as an engine does; gives its status. */
export async function stop(running: RunningProcess): Promise<unknown> {
  process.kill(pidOf(running.output()) ?? 0, 'SIGTERM');
  return running.ended();
}

/** A process in a container tells in its log which it is: containers share the machine's processes here. */
const pidOf = (output: string) => {
  const [, pid] = /"pid":(\d+)/.exec(output) ?? [];
  return pid === undefined ? undefined : Number(pid);
};
