/**
 * Runs pods on this machine as the manifests describe them: a read-only buildah image with the command, user, rights,
 * mounts, environment and probes of the manifest, and its own process 1. Pods share this machine's network. Each has a
 * loopback address, which replaces `0.0.0.0` in its settings.
 */
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect, onTestFinished } from 'vitest';
import { type RunningProcess, temporaryFolder, watch } from '../tools/processes.ts';
import { type ContainerSpec, filterByKind, findPod, type Manifest, makeEnvironment, type Probe } from './kubernetes.ts';

const execute = promisify(execFile);

/** How long names and Services keep the address of a pod that has begun to stop; milliseconds. */
const PROPAGATION_MS = 1500;

export interface Pod {
  readonly deployment: string;
  readonly address: string;
  /** The command prefix that runs a command in the container. */
  readonly commandPrefix: readonly string[];
  readonly process: RunningProcess;
  /** Whether each of its probes succeeds, including the startup probe. */
  isReady(): Promise<boolean>;
  /** Stops it as the cluster does. Returns its exit status, or the signal that killed it after its grace period. */
  stop(): Promise<unknown>;
  kill(): Promise<unknown>;
}

export interface Cluster {
  /** Starts a pod of a deployment, and waits until it is ready. */
  start(deployment: string): Promise<Pod>;
  /** Starts a new pod and then stops the old one. Returns how the old one ended. */
  replace(pod: Pod): Promise<unknown>;
  /** Kills a pod and starts another. */
  crash(pod: Pod): Promise<void>;
  /** The pods of a deployment to which the cluster sends callers. */
  findEndpoints(deployment: string): readonly Pod[];
}

/**
 * @param image a buildah image
 * @param secrets a folder with a folder of files for each secret
 */
export async function aCluster(image: string, manifests: readonly Manifest[], secrets: string): Promise<Cluster> {
  const root = await mountImage(image, manifests);
  const folder = temporaryFolder();
  const hosts = join(folder, 'hosts');
  const network = `127.${randomInt(16, 255)}.${randomInt(256)}`;
  const endpoints = new Set<Pod>();
  let started = 0;
  const writeHosts = () => {
    const names = [...endpoints].map(({ address, deployment }) => `${address} ${deployment}\n`);
    writeFileSync(hosts, ['127.0.0.1 localhost\n', ...names].join(''));
  };
  const leave = (pod: Pod) => {
    endpoints.delete(pod);
    writeHosts();
  };
  writeHosts();

  const cluster: Cluster = {
    async start(name) {
      started += 1;
      const pod = await startPod(name, {
        root,
        folder: join(folder, `${started}`),
        hosts,
        secrets,
        manifests,
        address: `${network}.${started}`,
      });
      await expect.poll(pod.isReady, { timeout: 90_000, interval: 100 }).toBe(true);
      endpoints.add(pod);
      writeHosts();
      return pod;
    },
    async replace(pod) {
      await cluster.start(pod.deployment);
      const [status] = await Promise.all([pod.stop(), sleep(PROPAGATION_MS).then(() => leave(pod))]);
      return status;
    },
    async crash(pod) {
      await pod.kill();
      await sleep(PROPAGATION_MS);
      leave(pod);
      await cluster.start(pod.deployment);
    },
    findEndpoints: (name) => [...endpoints].filter(({ deployment }) => deployment === name),
  };
  return cluster;
}

/** Mounts an image, with folders for the pods' volumes. Returns its root, which the pods share. */
async function mountImage(image: string, manifests: readonly Manifest[]): Promise<string> {
  const container = (await execute('buildah', ['from', '--pull-never', image])).stdout.trim();
  onTestFinished(async () => void (await execute('buildah', ['rm', container])));
  const root = (await execute('buildah', ['mount', container])).stdout.trim();
  for (const deployment of filterByKind(manifests, 'Deployment')) {
    for (const { mountPath } of findPod(deployment).containers[0].volumeMounts)
      mkdirSync(join(root, mountPath), { recursive: true });
  }
  return root;
}

interface Node {
  readonly root: string;
  /** The pod's own folder. */
  readonly folder: string;
  readonly hosts: string;
  readonly secrets: string;
  readonly manifests: readonly Manifest[];
  readonly address: string;
}

async function startPod(name: string, node: Node): Promise<Pod> {
  const { root, manifests, address } = node;
  const deployment = filterByKind(manifests, 'Deployment').find(({ metadata }) => metadata.name === name);
  if (!deployment) throw new Error(`there is no deployment ${name}`);
  const { securityContext, terminationGracePeriodSeconds, containers } = findPod(deployment);
  const [container] = containers;
  const { runAsUser, runAsGroup, fsGroup } = securityContext;
  // The manifests take these rights from all containers, as test/kubernetes.test.ts checks.
  const rights = ['--bounding-set=-all', '--inh-caps=-all', '--no-new-privs', '--pdeathsig=KILL'];
  const user = ['setpriv', `--reuid=${runAsUser}`, `--regid=${runAsGroup}`, `--groups=${fsGroup}`, ...rights];
  const environment = Object.entries({
    PATH: '/usr/local/bin:/usr/bin:/bin',
    NODE_ENV: 'production',
    ...makeEnvironment(container, manifests),
  }).map(([setting, value]) => `${setting}=${value.replace('0.0.0.0', address)}`);
  const within = [...user, 'env', '-i', '--chdir=/app', ...environment];

  const mounts = findMounts(deployment, node).map(([outside, inside, isReadOnly]) => {
    const target = join(root, inside);
    return `mount --bind ${outside} ${target}${isReadOnly ? ` && mount -o remount,bind,ro ${target}` : ''}`;
  });
  const script = ['set -e', `mount --rbind ${root} ${root}`, ...mounts, `mount -t proc proc ${root}/proc`]
    .concat(`mount --rbind /dev ${root}/dev`, `mount -o remount,bind,ro ${root}`, `exec chroot ${root} "$@"`)
    .join('\n');
  const unshare = ['--mount', '--pid', '--fork', '--kill-child', 'bash', '-c', script, 'pod'];
  const running = watch(
    spawn('unshare', [...unshare, ...within, ...container.command], { stdio: ['ignore', 'pipe', 'pipe'] }),
  );
  onTestFinished(() => running.kill());
  const pid = await expect
    .poll(() => findChild(running.child.pid))
    .toBeGreaterThan(0)
    .then(() => findChild(running.child.pid));
  const commandPrefix = ['nsenter', `--target=${pid}`, '--mount', '--pid', '--root', ...within];
  const probe = (what: Probe) => succeeds(what, container, address, commandPrefix);
  const signal = (which: NodeJS.Signals) => running.child.exitCode === null && process.kill(pid, which);
  return {
    deployment: name,
    address,
    commandPrefix,
    process: running,
    async isReady() {
      // The cluster starts the other probes once the startup probe has succeeded, so this asks one after the other.
      for (const each of [container.startupProbe, container.readinessProbe, container.livenessProbe]) {
        if (each && !(await probe(each))) return false;
      }
      return true;
    },
    async stop() {
      signal('SIGTERM');
      const late = setTimeout(() => signal('SIGKILL'), terminationGracePeriodSeconds * 1000);
      return running.ended().finally(() => clearTimeout(late));
    },
    kill() {
      signal('SIGKILL');
      return running.ended();
    },
  };
}

/** Returns each mount: its source, its target, and whether it is read-only. */
function findMounts(deployment: Manifest, { folder, hosts, secrets }: Node): [string, string, boolean][] {
  const { volumes, containers, securityContext } = findPod(deployment);
  const mounts = containers[0].volumeMounts.map(({ name, mountPath, readOnly = false }): [string, string, boolean] => {
    const volume = volumes.find((each) => each.name === name);
    // All pods share the volume of a claim.
    const claim = volume?.persistentVolumeClaim?.claimName;
    const outside = claim === undefined ? join(folder, name) : join(folder, '..', claim);
    mkdirSync(outside, { recursive: true });
    if (volume?.secret) cpSync(join(secrets, volume.secret.secretName), outside, { recursive: true });
    // The cluster does this by `fsGroup`.
    const mode = volume?.secret?.defaultMode.toString(8) ?? '0660';
    const own = `chown -R 0:${securityContext.fsGroup} ${outside} && chmod 2775 ${outside} && find ${outside} -type f -exec chmod ${mode} {} +`;
    execFileSync('bash', ['-c', own]);
    return [outside, mountPath, readOnly || volume?.secret !== undefined];
  });
  return [...mounts, [hosts, '/etc/hosts', true]];
}

/** Returns the child of a process, or 0. */
const findChild = (pid: number | undefined) =>
  Number(spawnSync('pgrep', ['-P', `${pid}`], { encoding: 'utf8' }).stdout);

async function succeeds(
  probe: Probe,
  { ports }: ContainerSpec,
  address: string,
  [program = '', ...args]: readonly string[],
): Promise<boolean> {
  if (probe.exec)
    return execute(program, [...args, ...probe.exec.command]).then(
      () => true,
      () => false,
    );
  const port = ports.find(({ name }) => name === probe.httpGet?.port)?.containerPort;
  return fetch(`http://${address}:${port}${probe.httpGet?.path}`).then(
    ({ ok }) => ok,
    () => false,
  );
}
