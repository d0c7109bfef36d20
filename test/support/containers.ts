/** Builds images and runs containers with buildah, which needs root but no engine. Containers use the host's network. */
import { execFile, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { ROOT, type RunningProcess, temporaryFolder, watch } from '../tools/processes.ts';
import { describeIf, hasCommand } from '../tools/servers.ts';

const execute = promisify(execFile);

/** The name under which `.ci/base-image` stores the base image, or a substitute for it. */
const [, BASE_IMAGE = ''] = /^ARG BASE_IMAGE=([^@]+)@/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')) ?? [];

const hasBaseImage = () =>
  hasCommand('buildah') && spawnSync('buildah', ['images', '--quiet', BASE_IMAGE], { encoding: 'utf8' }).stdout !== '';

/** Defines a suite that builds the image and runs it. */
export function describeWithImage(name: string, body: () => void): void {
  describeIf(hasBaseImage(), name, 'install buildah and run `.ci/base-image` as root', body);
}

/** Builds the image of the Dockerfile and returns its id. */
export async function buildImage(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-image-'));
  try {
    const idFile = join(folder, 'id');
    // Layers speed up the next build on the same machine.
    const layers = process.env.CI ? '--layers=false' : '--layers';
    const how = ['--network', 'host', '--isolation', 'chroot', '--format', 'docker', layers, '--pull-never'];
    await execute('buildah', ['bud', ...how, '--build-arg', `BASE_IMAGE=${BASE_IMAGE}`, '--iidfile', idFile, ROOT]);
    return readFileSync(idFile, 'utf8');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Removes an image, but neither the base image nor the layers that other builds share. */
export async function removeImage(image: string): Promise<void> {
  // A concurrent run may have built the same image and still use it.
  await execute('buildah', ['rmi', image]).catch(() => {});
}

/** Returns the default command of an image, and its labels. */
export async function readConfig(
  image: string,
): Promise<{ readonly Cmd: readonly string[]; readonly Labels: Readonly<Record<string, string>> }> {
  const { stdout } = await execute('buildah', ['inspect', '--type', 'image', image]);
  return JSON.parse(stdout).Docker.config;
}

/** A container, removed at the end of the test. */
export interface Container {
  /** Returns a shell function that runs its arguments in the container, and prints their output. */
  shellFunction(name: string): string;
  /** Runs a command to its end; returns its exit status and its whole output. */
  exec(...command: string[]): Promise<{ status: number; output: string }>;
  /** Starts the container's own process, which ends with the test. */
  run(...command: string[]): RunningProcess;
}

/** Options of a container. */
interface ContainerOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Files of the host by their paths in the container, mounted read-only. */
  readonly files?: Readonly<Record<string, string>>;
}

/** A folder that the processes of a container write to. */
const OUTPUT_FOLDER = '/run/output';

/**
 * Runs its arguments with their output in a file, because buildah copies its command's output, and on a busy machine loses
 * the end of it.
 */
const PRINTING_TO_A_FILE = ['sh', '-c', `exec "$@" >${OUTPUT_FOLDER}/last 2>&1`, 'sh'];

export async function createContainer(
  image: string,
  { env = {}, files = {} }: ContainerOptions = {},
): Promise<Container> {
  const container = (await execute('buildah', ['from', '--pull-never', image])).stdout.trim();
  onTestFinished(async () => void (await execute('buildah', ['rm', container])));

  const settings = Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  const mounts = Object.entries(files).flatMap(([inside, outside]) => ['--volume', `${outside}:${inside}:ro`]);
  const folder = temporaryFolder();
  // Processes in the container run as another user than the tests.
  chmodSync(folder, 0o777);
  const output = join(folder, 'last');
  const options = ['--isolation', 'chroot', '--network', 'host', ...settings, ...mounts];
  const buildah = ['run', ...options, '--volume', `${folder}:${OUTPUT_FOLDER}`, container, '--'];
  const call = (command: readonly string[]) =>
    watch(spawn('buildah', [...buildah, ...command], { stdio: ['ignore', 'pipe', 'pipe'] }));
  return {
    shellFunction(name) {
      const quoted = ['buildah', ...buildah, ...PRINTING_TO_A_FILE].map((word) => `'${word.replaceAll("'", "'\\''")}'`);
      return `${name}() { ${quoted.join(' ')} "$@" </dev/null; set -- $?; cat '${output}'; return $1; }`;
    },
    async exec(...command) {
      const running = call([...PRINTING_TO_A_FILE, ...command]);
      const status = Number(await running.ended());
      return { status, output: `${readFileSync(output, 'utf8')}${running.output()}` };
    },
    run(...command) {
      const running = call(command);
      onTestFinished(async () => {
        // The container's process is not a child of this one, so it is killed by its id if it still runs.
        const pid = findPid(running.output());
        if (pid !== undefined && running.child.exitCode === null) process.kill(pid, 'SIGKILL');
        await running.ended();
      });
      return running;
    },
  };
}

/** Stops the process of a container with SIGTERM like an engine, and returns its exit status. */
export async function stop(running: RunningProcess): Promise<unknown> {
  process.kill(findPid(running.output()) ?? 0, 'SIGTERM');
  return running.ended();
}

/** Reads the process id from a container's log; containers share the host's process ids here. */
const findPid = (output: string) => {
  const [, pid] = /"pid":(\d+)/.exec(output) ?? [];
  return pid === undefined ? undefined : Number(pid);
};
