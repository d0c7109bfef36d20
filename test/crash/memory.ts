import { readFileSync } from 'node:fs';

/** Returns the resident memory of a process; megabytes. */
export function memoryMb({ child }: { readonly child: { readonly pid?: number | undefined } }): number {
  const [, kilobytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1000;
}
