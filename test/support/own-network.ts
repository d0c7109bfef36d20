import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { describeIf } from '../tools/servers.ts';

const MIGRATION = '/proc/sys/net/ipv4/tcp_migrate_req';

/** Runs a script in a network namespace. SET_UP enables its loopback and sets `net.ipv4.tcp_migrate_req` to "$1". */
const UNSHARE = ['unshare', '--net', 'sh', '-c'] as const;
const SET_UP = `ip link set lo up && echo "$1" > ${MIGRATION}`;

const [unshare, ...unshareArgs] = [...UNSHARE, SET_UP, 'sh', '1'] as const;

/** Defines a suite whose tests have their own networks. */
export function describeWithOwnNetwork(name: string, body: () => void): void {
  const isAvailable = spawnSync(unshare, unshareArgs).status === 0;
  describeIf(isAvailable, name, 'run it as root, on Linux 5.14 or later with iproute2', body);
}

/**
 * Creates a network for one test, in which every port is free.
 *
 * @param migrates whether connections waiting to be accepted move to another process when theirs closes the port
 * @returns the command prefix that runs a process in the network
 */
export async function anOwnNetwork(migrates: boolean): Promise<readonly string[]> {
  const [command, ...args] = [...UNSHARE, `${SET_UP} && echo up && exec sleep infinity`, 'sh', `${Number(migrates)}`];
  const holder = spawn(command as string, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void holder.kill());
  await once(holder.stdout, 'data');
  return ['nsenter', `--net=/proc/${holder.pid}/ns/net`, '--'];
}
