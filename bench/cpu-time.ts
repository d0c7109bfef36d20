import { readFileSync } from 'node:fs';

/** The kernel's clock ticks in a second, as it shows them to programs: on every platform of Linux 100. */
const TICKS_PER_SECOND = 100;

/** The processor time that a process has had so far, all its threads together; microseconds. NaN where there is no /proc. */
export function cpuTimeUs(pid: number | undefined): number {
  const stat = read(`/proc/${pid}/stat`);
  // The name, field 2, may contain blanks: what follows it begins with field 3. utime and stime are fields 14 and 15.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields?.[11]) + Number(fields?.[12])) / TICKS_PER_SECOND) * 1e6;
}

/** The child of a process whose command line names a file. Undefined where there is no /proc. */
export function childRunning(file: string, parent: number): number | undefined {
  const children = read(`/proc/${parent}/task/${parent}/children`)?.trim().split(' ').map(Number) ?? [];
  return children.find((pid) => read(`/proc/${pid}/cmdline`)?.includes(file));
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
