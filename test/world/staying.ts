import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { hasCommand } from '../support/servers.ts';

/** Somebody with a connection of their own who says something, and takes little or nothing of the answer. */
export interface Caller {
  /** Its address, of this machine. */
  readonly from: string;
  readonly says: string;
  /** Whether the systems keep no more than they must of what is sent to it. */
  readonly isNarrow: boolean;
  /** How much it takes of its answer; bytes in a second. */
  readonly takes: number;
  /** What it says besides, each second. */
  readonly adds: string;
}

/** How it stands with a caller. */
export interface Seen {
  readonly isOpen: boolean;
  /** Of the first answer; 0 until there is one. */
  readonly status: number;
  readonly length: number;
  /** How much of it the gateway still has itself: neither taken, nor with a system. */
  readonly left: number;
}

/** Whether somebody can stay here: on Linux, which tells of a connection that is closed to who takes nothing of it. */
export const canStay: boolean = process.platform === 'linux' && (process.env.CI === 'true' || hasCommand('python3'));

/** Callers who stay until they are told to leave. */
export interface Staying {
  /** How it stands with each, as of the last second; empty until all have come. */
  seen(): readonly Seen[];
  leave(): Promise<void>;
}

/** @param gapSeconds how long after one the next comes */
export function letStay(url: string, callers: readonly Caller[], gapSeconds = 0): Staying {
  const child = spawn('python3', [join(import.meta.dirname, 'stayers.py')], { stdio: ['pipe', 'pipe', 'inherit'] });
  let seen: readonly Seen[] = [];
  createInterface(child.stdout).on('line', (line) => {
    seen = JSON.parse(line);
  });
  child.stdin.on('error', () => {});
  child.stdin.write(`${JSON.stringify({ port: Number(new URL(url).port), gapSeconds, callers })}\n`);
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
  return {
    seen: () => seen,
    leave() {
      child.stdin.end();
      return ended;
    },
  };
}
