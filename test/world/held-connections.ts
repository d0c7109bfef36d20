import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { hasCommand } from '../support/servers.ts';

/** A client that sends something on its own connection, and reads little or nothing of the response. */
export interface Caller {
  /** Its local address on this machine. */
  readonly from: string;
  readonly sends: string;
  /** Whether its receive buffer and segment size are minimal, so that the kernels buffer little of its response. */
  readonly isNarrow: boolean;
  /** How fast it reads its response; bytes per second. */
  readonly bytesPerSecond: number;
  /** What it sends in addition, each second. */
  readonly sendsEachSecond: string;
}

/** The state of a caller's connection. */
export interface ClientState {
  readonly isOpen: boolean;
  /** The status of the first response; 0 until there is one. */
  readonly status: number;
  readonly length: number;
  /** How much of the response the gateway still buffers itself: neither read by the client, nor in a kernel buffer. */
  readonly left: number;
}

/** Whether this machine can run such clients: only Linux reports a closed connection to a client that reads nothing. */
export const canHoldConnections: boolean =
  process.platform === 'linux' && (process.env.CI === 'true' || hasCommand('python3'));

/** Clients that keep their connections until `leave` is called. */
export interface HoldingClients {
  /** The state of each client, updated every second; empty until all have connected. */
  states(): readonly ClientState[];
  leave(): Promise<void>;
}

/** @param gapSeconds the time between two connects */
export function startClients(url: string, callers: readonly Caller[], gapSeconds = 0): HoldingClients {
  const child = spawn('python3', [join(import.meta.dirname, 'held-connections.py')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let states: readonly ClientState[] = [];
  createInterface(child.stdout).on('line', (line) => {
    states = JSON.parse(line);
  });
  child.stdin.on('error', () => {});
  child.stdin.write(`${JSON.stringify({ port: Number(new URL(url).port), gapSeconds, callers })}\n`);
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
  return {
    states: () => states,
    leave() {
      child.stdin.end();
      return ended;
    },
  };
}
