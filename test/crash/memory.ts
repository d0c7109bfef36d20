import { readFileSync } from 'node:fs';

/** Returns the resident memory of a process; megabytes. */
export function memoryMb({ child }: { readonly child: { readonly pid?: number | undefined } }): number {
  const [, kilobytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1000;
}

/** Returns the processor time that a process has used, however busy the machine is; seconds. */
export function cpuSeconds({ child }: { readonly child: { readonly pid?: number | undefined } }): number {
  // The name, in parentheses, may contain blanks. The third field comes after it.
  const [, fields = ''] = /.*\) (.*)/s.exec(readFileSync(`/proc/${child.pid}/stat`, 'utf8')) ?? [];
  const [user, system] = fields.split(' ').slice(11, 13);
  return (Number(user) + Number(system)) / TICKS_PER_SECOND;
}

/** The clock ticks of a second, the same on every Linux. */
const TICKS_PER_SECOND = 100;
