import { readdirSync, readFileSync } from 'node:fs';

/**
 * The processor time of all threads of a process so far; microseconds. NaN where Linux does not provide it. It is summed over threads,
 * because for whole processes the kernel counts clock ticks, which are longer than a request.
 */
export function cpuTimeUs(pid: number | undefined): number {
  const threads = attempt(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  // The first of three numbers: nanoseconds on a processor.
  const times = threads.map((id) => Number.parseInt(read(`/proc/${pid}/task/${id}/schedstat`) ?? '', 10));
  return times.length === 0 ? Number.NaN : times.reduce((sum, time) => sum + time) / 1000;
}

/** The time of all processors since the boot of the machine; clock ticks. NaN where Linux does not provide it. */
export interface ProcessorTicks {
  readonly all: number;
  /** The time that a virtual machine's host gave to other guests while this one had work. */
  readonly stolen: number;
}

export function processorTicks(): ProcessorTicks {
  const [line = ''] = read('/proc/stat')?.split('\n', 1) ?? [];
  // User, nice, system, idle, waiting for disks, two kinds of interrupts, stolen.
  const ticks = line.split(/\s+/).slice(1, 9).map(Number);
  return { all: ticks.reduce((sum, each) => sum + each, 0), stolen: ticks[7] ?? Number.NaN };
}

/** The child of a process that runs a file. Undefined without /proc. */
export function childRunning(file: string, parent: number): number | undefined {
  const children = read(`/proc/${parent}/task/${parent}/children`)?.trim().split(' ').map(Number) ?? [];
  return children.find((pid) => read(`/proc/${pid}/cmdline`)?.includes(file));
}

function read(path: string): string | undefined {
  return attempt(() => readFileSync(path, 'utf8'));
}

function attempt<Result>(body: () => Result): Result | undefined {
  try {
    return body();
  } catch {
    return undefined;
  }
}
