import { readFileSync } from 'node:fs';
import type { RunningProcess } from '../support/processes.ts';

/** What a process holds in memory; megabytes. */
export function memoryMb({ child }: RunningProcess): number {
  const [, kilobytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1000;
}
