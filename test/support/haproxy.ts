import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { ROOT, temporaryFolder, watch } from '../tools/processes.ts';
import { describeIf, freePort, hasCommand } from '../tools/servers.ts';

/** A HAProxy with the settings of docs/how-to/balancers.md. */
export interface Haproxy {
  /** The address at which callers reach the gateways. */
  readonly apiUrl: string;
  /** The address at which gateways and the CRM reach the cores. */
  readonly coreUrl: string;
  /** The state of the server at a port, such as `UP`, `UP 1/2` or `DOWN`. */
  readState(port: number): Promise<string>;
}

/** Defines a suite whose tests start a HAProxy. */
export function describeWithHaproxy(name: string, body: () => void): void {
  describeIf(hasCommand('haproxy'), name, 'install haproxy', body);
}

/** Starts a HAProxy in front of two gateways and two cores, which listen on these ports of this machine. */
export async function startHaproxy(gateways: readonly number[], cores: readonly number[]): Promise<Haproxy> {
  const [apiPort, corePort] = [await freePort(), await freePort()];
  const folder = temporaryFolder();
  const socket = join(folder, 'stats');
  const guide = readFileSync(join(ROOT, 'docs/how-to/balancers.md'), 'utf8');
  const settings = [...guide.matchAll(/```haproxy\n([\s\S]*?)```/g)].map(([, block]) => block).join('\n');
  const addresses = [
    [':80\n', `127.0.0.1:${apiPort}\n`],
    [':50051\n', `127.0.0.1:${corePort}\n`],
    ['10.0.0.11:8080', `127.0.0.1:${gateways[0]}`],
    ['10.0.0.12:8080', `127.0.0.1:${gateways[1]}`],
    ['10.0.0.21:50051', `127.0.0.1:${cores[0]}`],
    ['10.0.0.22:50051', `127.0.0.1:${cores[1]}`],
  ] as const;
  const file = join(folder, 'haproxy.cfg');
  // The servers come first, because their ports also match the texts of the listeners.
  const local = addresses.toReversed().reduce((all, [from, to]) => {
    if (!all.includes(from)) throw new Error(`balancers.md has no ${from}`);
    return all.replaceAll(from, to);
  }, settings);
  writeFileSync(file, `global\n  stats socket ${socket} mode 600\n\n${local}`);
  const running = watch(spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'pipe', 'pipe'] }));
  onTestFinished(() => running.kill());

  async function readState(port: number): Promise<string> {
    const stats = connect(socket).end('show stat\n');
    const [, ...rows] = (await text(stats)).trim().split('\n');
    const states = rows.map((each) => each.split(',')).filter((cells) => cells.includes(`127.0.0.1:${port}`));
    // In a backend without checks, the state of a server is always `no check`.
    return states.map((cells) => cells[STATE] ?? '').find((state) => state !== 'no check') ?? 'unknown';
  }
  return { apiUrl: `http://127.0.0.1:${apiPort}`, coreUrl: `http://127.0.0.1:${corePort}`, readState };
}

/** The column of a server's state. */
const STATE = 17;
